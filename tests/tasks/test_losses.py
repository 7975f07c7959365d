"""The loss against a slow loop over entries; class weights; the penalty."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.class_weight import compute_class_weight
from torch import Tensor

from censnet.tasks.losses import RegressionLoss, balanced_class_weights, penalty, row_loss
from censnet.tasks.targets import Target

NONE = float("nan")
BINARY = Target(level="node", column="b", kind="binary", classes=["no", "yes"])
CLASSES = Target(level="node", column="c", kind="multiclass", classes=["x", "y", "z"])
NUMBER = Target(level="node", column="n", kind="regression", mean=3.0, scale=2.0)
MIXED = [BINARY, CLASSES, NUMBER, BINARY]


def slow_loss(targets: Any, outputs: Tensor, labels: Tensor, weight: Any, class_weight: Any) -> list[float]:
    """One entry after the other, by the formulas."""
    found = []
    for member in range(outputs.shape[1]):
        total = count = 0.0
        for row in range(len(outputs)):
            start = 0
            for column, target in enumerate(targets):
                x, y = outputs[row, member, start : start + target.width].tolist(), float(labels[row, column])
                start += target.width
                if math.isnan(y):
                    continue
                if target.kind == "binary":
                    p = 1 / (1 + math.exp(-x[0]))
                    each = -math.log(p if y == 1 else 1 - p)
                elif target.kind == "multiclass":
                    each = -math.log(math.exp(x[int(y)]) / sum(map(math.exp, x)))
                else:
                    each = (x[0] - y) ** 2
                if class_weight is not None and class_weight[column] is not None:
                    each *= float(class_weight[column][int(y)])
                share = 1.0 if weight is None else float(weight[row, member])
                total, count = total + share * each, count + share
        found.append(total / count if count else 0.0)
    return found


def draw(targets: list[Target], rows: int, members: int, seed: int, gaps: float) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    width = sum(target.width for target in targets)
    outputs = torch.randn(rows, members, width, generator=generator, dtype=torch.float64)
    columns = []
    for target in targets:
        high = {"binary": 2, "multiclass": len(target.classes), "regression": 1}[target.kind]
        codes = torch.randint(high, (rows,), generator=generator).double()
        columns.append(torch.randn(rows, generator=generator).double() if target.kind == "regression" else codes)
    labels = torch.stack(columns, dim=1)
    labels[torch.rand(labels.shape, generator=generator) < gaps] = NONE
    return outputs, labels


@given(
    targets=st.lists(st.sampled_from([BINARY, CLASSES, NUMBER]), min_size=1, max_size=5),
    rows=st.integers(0, 6),
    members=st.integers(1, 3),
    seed=st.integers(0, 2**16),
    gaps=st.sampled_from([0.0, 0.4, 1.0]),
    weighted=st.booleans(),
    balanced=st.booleans(),
)
def test_the_loss_is_the_mean_over_labeled_entries(
    targets: list[Target], rows: int, members: int, seed: int, gaps: float, weighted: bool, balanced: bool
) -> None:
    outputs, labels = draw(targets, rows, members, seed, gaps)
    weight = torch.rand(rows, members, dtype=torch.float64) if weighted else None
    widths = {"binary": 2, "multiclass": 3}
    class_weight = [torch.rand(widths[t.kind]) if t.kind in widths else None for t in targets] if balanced else None
    found = row_loss(targets, outputs, labels, weight, class_weight)
    expected = torch.tensor(slow_loss(targets, outputs, labels, weight, class_weight), dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-9)


def test_one_binary_label_by_hand() -> None:
    found = row_loss([BINARY], torch.tensor([[[2.0]], [[5.0]]]), torch.tensor([[1.0], [NONE]]))
    torch.testing.assert_close(found, torch.tensor([math.log1p(math.exp(-2))]))


def test_a_mask_for_each_member_gives_each_its_own_rows() -> None:
    outputs, labels = draw(MIXED, 6, 2, 0, 0.2)
    mask = torch.tensor([[1, 0], [1, 0], [0, 1], [0, 1], [1, 1], [0, 0]], dtype=torch.bool)
    found = row_loss(MIXED, outputs, labels, mask)
    for member in range(2):
        rows = mask[:, member]
        alone = row_loss(MIXED, outputs[rows][:, [member]], labels[rows])
        torch.testing.assert_close(found[[member]], alone)


@pytest.mark.parametrize("rows", [0, 3])
@pytest.mark.parametrize("weight", [None, "zeros"])
def test_without_a_labeled_entry_loss_and_gradient_are_0(rows: int, weight: str | None) -> None:
    outputs = torch.randn(rows, 2, 6, requires_grad=True)
    labels = torch.full((rows, 4), NONE) if weight is None else torch.zeros(rows, 4)
    loss = row_loss(MIXED, outputs, labels, None if weight is None else torch.zeros(rows, 2))
    assert loss.tolist() == [0, 0]
    loss.sum().backward()
    assert outputs.grad is not None
    assert outputs.grad.count_nonzero() == 0


def test_a_masked_entry_has_no_gradient() -> None:
    outputs = torch.randn(2, 1, 6)
    outputs[1] *= 1e15
    outputs.requires_grad_()
    labels = torch.tensor([[1.0, 2.0, 0.5, 0.0], [NONE] * 4])
    loss = row_loss(MIXED, outputs, labels)
    torch.testing.assert_close(loss, row_loss(MIXED, outputs[:1], labels[:1]))
    loss.sum().backward()
    assert outputs.grad is not None
    assert outputs.grad[1].tolist() == [[0.0] * 6]
    assert outputs.grad[0].count_nonzero() == 6


def test_sure_and_wrong_answers_stay_finite() -> None:
    outputs = torch.tensor([[[1e4, 1e4, -1e4, 0.0, 0.0, -1e4]]], requires_grad=True)
    loss = row_loss(MIXED, outputs, torch.tensor([[0.0, 1.0, 0.0, 1.0]]))
    torch.testing.assert_close(loss.detach(), torch.tensor([(1e4 + 2e4 + 0 + 1e4) / 4]))
    loss.sum().backward()
    assert outputs.grad is not None
    assert outputs.grad.isfinite().all()


def test_gradients_pass_gradcheck() -> None:
    outputs, labels = draw(MIXED, 5, 2, 3, 0.3)
    weight = torch.rand(5, 2, dtype=torch.float64)
    weights = balanced_class_weights(MIXED, labels)
    assert torch.autograd.gradcheck(lambda x: row_loss(MIXED, x, labels, weight, weights), outputs.requires_grad_())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_is_raised_to_single(dtype: torch.dtype) -> None:
    outputs, labels = draw(MIXED, 50, 1, 0, 0.1)
    low = outputs.to(dtype)
    found = row_loss(MIXED, low, labels.float())
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, row_loss(MIXED, low.float(), labels.float()))


@pytest.mark.parametrize(
    ("outputs", "labels", "message"),
    [
        (torch.zeros(3, 1, 5), torch.zeros(3, 4), r"outputs has shape \(3, 1, 5\), expected \(\*, \*, 6\)"),
        (torch.zeros(3, 6), torch.zeros(3, 4), r"outputs has shape \(3, 6\)"),
        (torch.zeros(3, 1, 6), torch.zeros(2, 4), r"labels has shape \(2, 4\), expected \(3, 4\)"),
    ],
)
def test_shapes_that_do_not_fit_are_named(outputs: Tensor, labels: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        row_loss(MIXED, outputs, labels)


# -- class weights -----------------------------------------------------------------------------------------------------


def test_class_weights_are_those_of_scikit_learn() -> None:
    generator = torch.Generator().manual_seed(0)
    codes = torch.tensor([0, 0, 0, 1, 1, 2])[torch.randint(6, (200,), generator=generator)].float()
    signs = (torch.rand(200, generator=generator) < 0.1).float()
    labels = torch.stack([signs, codes, torch.randn(200), signs], dim=1)
    labels[::7] = NONE
    found = balanced_class_weights(MIXED, labels)
    for column, classes in ((0, 2), (1, 3)):
        known = labels[:, column][~labels[:, column].isnan()].int().numpy()
        expected = compute_class_weight("balanced", classes=np.arange(classes), y=known)
        weights = found[column]
        assert weights is not None
        torch.testing.assert_close(weights.double(), torch.from_numpy(expected), rtol=1e-6, atol=0)
        assert float(weights[torch.from_numpy(known).long()].mean()) == pytest.approx(1)
    assert found[2] is None


def test_a_class_without_rows_weighs_1_and_so_do_columns_without_labels() -> None:
    labels = torch.tensor([[0.0, NONE], [0.0, NONE], [2.0, NONE], [0.0, NONE]])
    found = balanced_class_weights([CLASSES, BINARY], labels)
    assert found[0] is not None
    assert found[1] is not None
    torch.testing.assert_close(found[0], torch.tensor([4 / (2 * 3), 1.0, 4 / (2 * 1)]))
    assert found[1].tolist() == [1, 1]


def test_balanced_classes_weigh_the_same_in_all() -> None:
    labels = torch.tensor([[0.0]] * 9 + [[1.0]])
    outputs = torch.zeros(10, 1, 1, requires_grad=True)
    row_loss([BINARY], outputs, labels, None, balanced_class_weights([BINARY], labels)).sum().backward()
    assert outputs.grad is not None
    pull = outputs.grad.view(-1)
    torch.testing.assert_close(pull[:9].sum(), -pull[9])


# -- the penalty -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [1, 1.5, 2, 3])
def test_the_penalty_is_the_sum_of_powers(power: float) -> None:
    parameters = [torch.randn(3, 4), torch.randn(5)]
    expected = sum(abs(value) ** power for theta in parameters for value in theta.flatten().tolist())
    assert penalty(parameters, power).tolist() == pytest.approx([expected])


def test_the_penalty_of_each_member_is_its_own() -> None:
    weight, bias = torch.randn(2, 3, 4), torch.randn(10)
    found = penalty([weight, bias], 2, members=2)
    for member in range(2):
        alone = penalty([weight[member], bias[5 * member : 5 * member + 5]], 2)
        torch.testing.assert_close(found[[member]], alone)


@pytest.mark.parametrize("power", [1, 1.5, 2])
def test_the_slope_of_the_penalty_at_0_is_0(power: float) -> None:
    theta = torch.zeros(3, requires_grad=True)
    penalty([theta], power).sum().backward()
    assert theta.grad is not None
    assert theta.grad.tolist() == [0, 0, 0]


@pytest.mark.parametrize("power", [0.5, 0, -1, float("nan"), float("inf")])
def test_a_power_without_a_slope_is_named(power: float) -> None:
    with pytest.raises(ValueError, match=r"^power is .*, expected a number from 1: below, the slope at 0 is infinite"):
        penalty([torch.ones(2)], power)


def test_no_parameters_have_no_penalty() -> None:
    assert penalty([], 2).tolist() == [0]


def test_a_censored_label_costs_on_the_wrong_side_alone() -> None:
    x = torch.tensor([[-1.0], [0.0], [2.0]]).repeat(3, 1).unsqueeze(1).requires_grad_()
    labels = torch.full((9, 1), 0.5)
    censoring = torch.tensor([[-1]] * 3 + [[1]] * 3 + [[0]] * 3, dtype=torch.int8)
    expected = [0, 0, 1.5**2, 1.5**2, 0.5**2, 0, 1.5**2, 0.5**2, 1.5**2]
    loss = row_loss([NUMBER], x, labels, censoring=censoring)
    torch.testing.assert_close(loss, torch.tensor([sum(expected) / 9]))
    loss.sum().backward()
    assert [bool(slope) for slope in x.grad.flatten()] == [bool(cost) for cost in expected]


@given(st.integers(0, 2**16))
def test_without_a_censored_label_sides_change_no_loss(seed: int) -> None:
    torch.manual_seed(seed)
    outputs = torch.randn(5, 2, sum(target.width for target in MIXED))
    labels = torch.stack([torch.randint(0, 2, (5,)).float() for _ in MIXED], dim=1)
    labels[torch.rand_like(labels) < 0.3] = NONE
    censoring = torch.zeros(5, len(MIXED), dtype=torch.int8)
    assert torch.equal(row_loss(MIXED, outputs, labels), row_loss(MIXED, outputs, labels, censoring=censoring))


@pytest.mark.parametrize("kind", ["squared", "absolute", "huber"])
def test_the_loss_of_numbers_and_its_gradient_by_hand(kind: RegressionLoss) -> None:
    outputs = torch.tensor([[[0.5]], [[-3.0]]], requires_grad=True)  # of labels 0: within and beyond one deviation
    loss = row_loss([NUMBER], outputs, torch.zeros(2, 1), regression_loss=kind)
    each = {"squared": (0.25, 9.0), "absolute": (0.5, 3.0), "huber": (0.25, 5.0)}[kind]
    slopes = {"squared": (1.0, -6.0), "absolute": (1.0, -1.0), "huber": (1.0, -2.0)}[kind]
    torch.testing.assert_close(loss, torch.tensor([sum(each) / 2]))
    (gradient,) = torch.autograd.grad(loss.sum(), outputs)
    torch.testing.assert_close(gradient.flatten(), torch.tensor(slopes) / 2)


def test_a_censored_number_costs_nothing_on_its_side_by_any_loss() -> None:
    outputs, limits = torch.tensor([[[2.0]], [[-2.0]]]), torch.ones(2, 1)  # both are above 0
    loss = row_loss([NUMBER], outputs, torch.zeros(2, 1), censoring=limits, regression_loss="absolute")
    torch.testing.assert_close(loss, torch.tensor([1.0]))
