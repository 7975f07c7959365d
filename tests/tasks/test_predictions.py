"""Answers as the user reads them: names, probabilities, units, deviations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from censnet.tasks.predictions import prediction_rows
from censnet.tasks.targets import Target

COLOR = Target.fit(pd.Series(["red", "green", "blue"]), "node", "colour")
SICK = Target.fit(pd.Series(["no", "yes"]), "node", "sick")
AGE = Target(level="node", column="age", kind="regression", mean=40.0, scale=10.0)


def test_one_member_by_hand() -> None:
    outputs = torch.tensor([[[0.0, 0.0, np.log(2), 2.0, -0.5], [5.0, 0.0, 0.0, -2.0, 1.0]]])
    found = prediction_rows([COLOR, SICK, AGE], outputs)
    assert list(found) == [
        "colour_predicted",
        "colour_p_blue",
        "colour_p_green",
        "colour_p_red",
        "sick_predicted",
        "sick_p_no",
        "sick_p_yes",
        "age_predicted",
    ]
    assert found["colour_predicted"].tolist() == ["red", "blue"]
    assert found.loc[0, ["colour_p_blue", "colour_p_green", "colour_p_red"]].tolist() == pytest.approx(
        [0.25, 0.25, 0.5]
    )
    assert found["sick_predicted"].tolist() == ["yes", "no"]
    assert found["sick_p_yes"].tolist() == pytest.approx([1 / (1 + np.exp(-2)), 1 / (1 + np.exp(2))])
    assert found["age_predicted"].tolist() == [35, 50]


def test_members_are_averaged_and_their_deviation_is_given() -> None:
    outputs = torch.randn(4, 6, 5, generator=torch.Generator().manual_seed(0))
    found = prediction_rows([COLOR, SICK, AGE], outputs)
    p = outputs[..., :3].softmax(2)
    np.testing.assert_allclose(found[[f"colour_p_{name}" for name in COLOR.classes]], p.mean(0), rtol=1e-5)
    np.testing.assert_allclose(found[[f"colour_std_{name}" for name in COLOR.classes]], p.std(0), rtol=1e-4)
    assert found["colour_predicted"].tolist() == [COLOR.classes[code] for code in p.mean(0).argmax(1)]
    q = outputs[..., 3].sigmoid()
    np.testing.assert_allclose(found["sick_p_yes"], q.mean(0), rtol=1e-5)
    np.testing.assert_allclose(found["sick_std_no"], q.std(0), rtol=1e-4)
    np.testing.assert_allclose(found["age_predicted"], outputs[..., 4].mean(0) * 10 + 40, rtol=1e-5)
    np.testing.assert_allclose(found["age_std"], outputs[..., 4].std(0) * 10, rtol=1e-5)


@given(st.integers(1, 3), st.integers(0, 2**16))
def test_probabilities_are_such_and_the_likeliest_is_named(members: int, seed: int) -> None:
    outputs = 20 * torch.randn(members, 5, 4, generator=torch.Generator().manual_seed(seed))
    found = prediction_rows([COLOR, SICK], outputs)
    for target in (COLOR, SICK):
        p = found[[f"{target.column}_p_{name}" for name in target.classes]].to_numpy()
        assert ((p >= 0) & (p <= 1)).all()
        np.testing.assert_allclose(p.sum(1), 1, rtol=1e-5)
        chosen = [target.classes.index(name) for name in found[f"{target.column}_predicted"]]
        assert (p[np.arange(5), chosen] == p.max(1)).all()


@pytest.mark.parametrize(
    ("labels", "names", "kind"),
    [
        ([0, 1, 1], ["1", "0"], "i"),
        ([0.0, 1.0, None], ["0", "1"], "i"),
        ([7, 8, 9] * 3, ["7", "8", "9"], "i"),
        ([True, False], ["False", "True"], "b"),
        ([0.5, 1.5] * 3, ["0.5", "1.5"], "f"),
        (["0", "1"], ["0", "1"], "O"),
        ([" Yes", "No "], ["No", "Yes"], "O"),
    ],
)
def test_classes_come_back_as_what_the_user_has(labels: Any, names: list[str], kind: str) -> None:
    series = pd.Series(labels)
    target = Target.fit(series, "node", "y")
    outputs = torch.eye(len(names)) * 9 if target.kind == "multiclass" else torch.tensor([[-9.0], [9.0]])
    found = prediction_rows([target], outputs.unsqueeze(0))
    assert list(found)[1:] == [f"y_p_{name}" for name in names]
    values = found["y_predicted"]
    if kind == "O":
        assert values.tolist() == names
    else:
        assert values.dtype.kind == kind
        assert sorted(values) == sorted(series.dropna().unique())
    assert target.encode(values).tolist() == list(range(len(names)))


def test_names_that_clash_get_a_number() -> None:
    odd = Target(level="node", column="a", kind="multiclass", classes=["predicted", "b", "c"])
    other = Target(level="node", column="a_p", kind="regression")
    found = prediction_rows([odd, other, other], torch.zeros(1, 2, 5), taken=["a_p_b", "a_p_b_2"])
    assert list(found) == ["a_predicted", "a_p_predicted", "a_p_b_3", "a_p_c", "a_p_predicted_2", "a_p_predicted_3"]


def test_no_rows_give_no_answers_but_their_columns() -> None:
    found = prediction_rows([COLOR, AGE], torch.zeros(1, 0, 4))
    assert found.shape == (0, 5)


def test_a_large_number_keeps_its_digits() -> None:
    big = Target(level="node", column="n", kind="regression", mean=123_456_789.0, scale=1.0)
    assert prediction_rows([big], torch.tensor([[[0.25]]]))["n_predicted"].tolist() == [123_456_789.25]


def test_outputs_of_a_network_in_training_and_in_low_precision_are_taken() -> None:
    outputs = torch.zeros(1, 2, 4, dtype=torch.bfloat16, requires_grad=True)
    assert prediction_rows([COLOR, AGE], outputs)["age_predicted"].tolist() == [40, 40]


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (torch.zeros(1, 2, 3), r"outputs has shape \(1, 2, 3\), expected \(\*, \*, 4\): \(members, n, width\)"),
        (torch.zeros(2, 4), r"outputs has shape \(2, 4\)"),
        (torch.zeros(0, 2, 4), "outputs has no members, expected at least one"),
    ],
)
def test_outputs_that_do_not_fit_are_named(outputs: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        prediction_rows([COLOR, AGE], outputs)


def test_clipped_answers_carry_a_mark_and_the_deviation_is_taken_before_clipping() -> None:
    age = Target(level="node", column="age", kind="regression", mean=40.0, scale=10.0, low=20.0, high=70.0)
    raw = torch.tensor([[[0.0], [9.0], [4.0]], [[1.0], [5.0], [2.0]]])  # of two members
    found = prediction_rows([age, SICK], torch.cat([raw.clamp(-2, 3), raw], 2), raw=torch.cat([raw, raw], 2))
    assert list(found)[:4] == ["age_predicted", "age_std", "age_clipped", "age_raw"]
    assert found["age_predicted"].tolist() == [45, 70, 65]  # as the members say together, each within the range
    assert found["age_clipped"].tolist() == [False, True, True]  # of the last, one member alone
    assert found["age_raw"].tolist() == [45, 110, 70]
    np.testing.assert_allclose(found["age_std"], [50**0.5, 800**0.5, 200**0.5])
    assert not any(name.startswith(("sick_clipped", "sick_raw")) for name in found)
    (alone,) = (prediction_rows([age], raw[:1].clamp(-2, 3), raw=raw[:1]),)
    assert list(alone) == ["age_predicted", "age_clipped", "age_raw"]
    assert list(prediction_rows([age], raw)) == ["age_predicted", "age_std"]  # of a network that clips nothing
