"""Columns of labels of every sort become the right kind of target, and numbers to learn from."""

from __future__ import annotations

import datetime
import decimal
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from censnet.data.tables.target_spec import TargetSpec, parse_targets
from censnet.errors import DataError
from censnet.tasks.targets import Target, output_slices, target_range

NONE = float("nan")


def fit(values: Any, **options: Any) -> Target:
    labels = values if isinstance(values, pd.Series) else pd.Series(values)
    return Target.fit(labels, "node", "y", **options)


def codes(target: Target, values: Any) -> list[float | None]:
    """What is learnt, None for no label."""
    found = target.encode(values if isinstance(values, pd.Series) else pd.Series(values))
    assert found.dtype == torch.float32
    return [None if value != value else value for value in found.tolist()]


# -- which kind it is --------------------------------------------------------------------------------------------------

WORDS = ["red", "green", "blue", "red"]


@pytest.mark.parametrize(
    ("values", "kind", "classes"),
    [
        ([True, False, None], "binary", ["False", "True"]),
        (pd.Series([True, False, None], dtype="boolean"), "binary", ["False", "True"]),
        ([0, 1, 1], "binary", ["1", "0"]),
        ([1.0, 0.0, NONE], "binary", ["0", "1"]),  # whole numbers that became fractions for their gaps
        (pd.Series([0, 1, None], dtype="Int64"), "binary", ["0", "1"]),
        ([" True ", "false", "", None, "NA"], "binary", ["false", "True"]),
        (["No", "YES", "n/a"], "binary", ["No", "YES"]),
        (["YES", "no", "Yes", "NO ", None], "binary", ["no", "YES"]),  # one word in several writings
        (["Y", "N", "T"], "multiclass", ["N", "T", "Y"]),  # letters, since three are no truth values
        (["0", "1", "1.0", "0"], "binary", ["0", "1"]),
        ([-1, 1] * 5, "binary", ["-1", "1"]),
        ([2, 1] * 5, "binary", ["1", "2"]),
        ([0.5, 1.5] * 5, "binary", ["0.5", "1.5"]),
        (["positive", "negative"], "binary", ["negative", "positive"]),
        (["+", "-"], "binary", ["-", "+"]),
        (["toxic", "non-toxic"], "binary", ["non-toxic", "toxic"]),
        (["Inactive", "Active", "Active", "Inactive"], "binary", ["Inactive", "Active"]),
        (["paid", "late", "paid"], "binary", ["paid", "late"]),  # the rarer is the positive one
        (["b", "a"], "binary", ["a", "b"]),
        (WORDS, "multiclass", ["blue", "green", "red"]),
        (pd.Series(pd.Categorical(WORDS, ["red", "pink", "blue", "green"])), "multiclass", ["blue", "green", "red"]),
        (pd.Series(pd.Categorical([3, 1, 2] * 3)), "multiclass", ["1", "2", "3"]),
        ([10, 9, 2, NONE] * 5, "multiclass", ["2", "9", "10"]),  # by size, not by the alphabet
        (["10", "9", "2", None] * 5, "multiclass", ["2", "9", "10"]),
        (["0", "1", "?"] + ["1"] * 40, "multiclass", ["0", "1", "?"]),
        (["007", "7", "08"], "multiclass", ["007", "7", "08"]),  # codes, not numbers
        (list(range(20)) * 3, "multiclass", [str(code) for code in range(20)]),
        (list(range(21)) * 3, "regression", []),
        ([1, 2, 3, 4], "regression", []),  # hardly fewer different numbers than rows
        ([0.1, 0.7], "regression", []),
        ([0.5, 1.0, 1.5] * 10, "regression", []),
        (["1.5", "2.5", "3.5", "-1e-3"], "regression", []),
        ([decimal.Decimal("1.5"), decimal.Decimal("2.5"), decimal.Decimal("7")], "regression", []),
        (pd.to_timedelta([1, 2, 5], unit="D").to_series(), "regression", []),
        (np.arange(30, dtype=np.uint64) * 2**58 + 2**63, "regression", []),
    ],
)
def test_the_kind_and_the_classes_are_found(values: Any, kind: str, classes: list[str]) -> None:
    target = fit(values)
    assert (target.kind, target.classes) == (kind, classes)
    assert target.width == (len(classes) if kind == "multiclass" else 1)
    assert target.reason


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (
            ["yes", "no"],
            "one of two words; positive: yes (by its name, 50 % of the labels), node:y=binary:no makes it no",
        ),
        ([3, 5] * 3, "3 or 5; positive: 5 (the larger of the two numbers, 50 % of the labels)"),
        (
            ["paid", "late", "paid"],
            "positive: late (the rarer, 33.3 % of the labels), node:y=binary:paid makes it paid",
        ),
        (["b", "a"], "positive: b (the last of the two, 50 % of the labels)"),
        (["not fraud", "fraud"], "positive: fraud (the other one is its negation, 50 % of the labels)"),
        ([1, 2, 3] * 3, "3 different whole numbers; node:y=regression learns them as numbers"),
        (["1.5"] + ["2.25", "3"] * 5 + ["?!"], "1 label is no number and left out, the first '?!'"),
    ],
)
def test_the_reason_is_said(values: Any, reason: str) -> None:
    assert reason in fit(values).reason


def test_a_kind_can_be_forced() -> None:
    assert fit([1, 2, 3] * 5, kind="regression").kind == "regression"
    assert fit([1.5, 2.5, 3.5], kind="multiclass").classes == ["1.5", "2.5", "3.5"]
    assert fit([0, 1], kind="multiclass").width == 2
    assert fit([0, 1], kind="regression").mean == 0.5
    assert fit(["1", "x", "3"], kind="regression").mean == 2
    assert fit([f"item {code}" for code in range(3000)], kind="multiclass").width == 3000
    assert fit([datetime.date(2020, 1, day) for day in (1, 2, 2)], kind="multiclass").classes == [
        "2020-01-01",
        "2020-01-02",
    ]
    assert fit([1, 2] * 5, kind="regression").reason == "as asked"


# -- labels that cannot be learnt --------------------------------------------------------------------------------------

DAYS = pd.Series(pd.date_range("2024-01-01", periods=40))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([None, None], "nodes, column y: has no label in any row, expected some to learn from"),
        ([NONE], "has no label in any row"),
        ([], "has no label in any row"),
        (["", "NA", " null "], "has no label in any row"),
        (pd.Series([], dtype="float64"), "has no label in any row"),
        ([1.0, 1.0, NONE], "is 1 in each labeled row, expected numbers that differ"),
        (["a", "a"], "is 'a' in each labeled row, expected two or more classes to tell apart"),
        ([True, True], "is 'True' in each labeled row"),
        ([0.5, float("inf"), 2.5], "nodes, row 2, column y: is infinite, expected a number, or nothing"),
        ([0.0, 1.0, float("-inf")], "nodes, row 3, column y: is infinite"),
        (DAYS, "holds dates or times, expected numbers or classes: count the days from one of them"),
        (DAYS.astype("string"), "holds dates or times"),
        ([[1, 2], [3]], "holds list<item: int64>, expected one number or one class in each row"),
        ([b"a", b"b"], "holds binary, expected one number or one class"),
        ([f"id {row}" for row in range(50)], r"has 50 different words in 50 labeled rows, expected numbers, or cl"),
        ([f"id {row}" for row in range(1500)] * 4, "ask for y=multiclass"),
        ([1e308, -1e308, 1e300], "holds numbers as large as 1e[+]308, expected some that can be squared"),
    ],
)
def test_labels_that_cannot_be_learnt_are_named(values: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        fit(values)


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        ([1, 2, 3], "binary", "has 3 different values, expected two for binary: leave the kind out, or ask for y=mul"),
        (["a", "b"], "regression", "has no label that can be learned: none is a number, the first is 'a'"),
        ([None, None], "regression", "has no label that can be learned: all are missing"),
        (DAYS, "regression", "has no label that can be learned: none is a number"),
        ([1, 2], "colour", "kind is 'colour', expected binary, multiclass, regression"),
        ([None], "multiclass", "has no label in any row"),
        ([2.0, 2.0], "regression", "is 2 in each labeled row"),
        ([1.0, float("inf"), 3.0], "regression", "row 2, column y: is infinite"),
    ],
)
def test_a_forced_kind_that_does_not_fit_is_named(values: Any, kind: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        fit(values, kind=kind)


def test_a_level_that_does_not_exist_is_named() -> None:
    with pytest.raises(DataError, match="level is 'tree', expected node, edge or graph"):
        Target.fit(pd.Series([1, 2]), "tree", "y")  # type: ignore[arg-type]


# -- what training rows decide -----------------------------------------------------------------------------------------


def test_a_number_is_standardised_by_its_training_rows_alone() -> None:
    target = fit([1.0, 3.0, NONE, 1000.0], rows=torch.tensor([0, 1, 2]))
    assert (target.mean, target.scale) == (2.0, 1.0)
    assert codes(target, [1.0, 3.0, NONE, 1000.0]) == [-1.0, 1.0, None, 998.0]


def test_a_class_seen_only_in_test_has_a_name_and_is_said() -> None:
    target = fit(["a", "b", "c", "a"], rows=torch.tensor([0, 1]))
    assert target.classes == ["a", "b", "c"]
    assert target.reason.endswith("classes without a row to train on: 1 of 3")


@pytest.mark.parametrize("values", [["a", "b", None, None], [1.5, 2.5, NONE, NONE]])
def test_training_rows_without_a_label_are_named(values: Any) -> None:
    with pytest.raises(DataError, match="nodes, column y: has no label in the training rows, expected some"):
        fit(values, rows=torch.tensor([2, 3]))


def test_training_rows_with_one_number_are_learnt_as_they_are() -> None:
    target = fit([0.1, 0.1, 0.1, 7.5], rows=torch.tensor([0, 1, 2]))
    assert target.scale == 1
    assert "all training rows have the same number" in target.reason
    torch.testing.assert_close(target.encode(pd.Series([0.1, 7.5])), torch.tensor([0.0, 7.4]))


@pytest.mark.parametrize("rows", [torch.tensor([0, 9]), torch.tensor([-1]), torch.tensor([True, False]), torch.ones(1)])
def test_rows_of_another_table_are_named(rows: torch.Tensor) -> None:
    with pytest.raises(DataError, match="rows are not rows of this table, expected some from 0 to 1"):
        fit(["a", "b"], rows=rows)


# -- labels as numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("learnt", "values", "expected"),
    [
        (["a", "b", "c"], [" c ", "a", None, "d", "NaN"], [2, 0, None, None, None]),
        ([0, 1], [True, False, None], [1, 0, None]),
        ([0, 1], ["yes", " No", "perhaps", "0.0"], [1, 0, None, 0]),
        (["True", "False"], [1.0, 0.0, NONE], [1, 0, None]),
        ([True, False], ["TRUE", "f"], [1, 0]),
        (["YES", "no", "Yes", "NO "], ["yes", "No", "YES", None], [1, 0, 1, None]),
        ([1, 2] * 5, [True, 2.0, "1"], [None, 1, 0]),  # 1 of 1 and 2 is no truth value
        ([1, 2, 3] * 5, ["3", "2.0", "+1", "4"], [2, 1, 0, None]),
        ([3.0, NONE, 5.0, 7.0] * 5, [7, 5, 3], [2, 1, 0]),
        (["01", "1", "x"], ["1", "01"], [1, 0]),
        (pd.Series(["u", "v", "w"], dtype="category"), pd.Series(["w", None], dtype="category"), [2, None]),
    ],
)
def test_labels_become_codes_whatever_they_are_written_as(learnt: Any, values: Any, expected: list[Any]) -> None:
    assert codes(fit(learnt), values) == expected


def test_numbers_in_any_writing_become_standardised_ones() -> None:
    target = fit([0.0, 1.5, 3.0, 4.5])
    found = target.encode(pd.Series(["3", " 1.5 ", "x", None]))
    torch.testing.assert_close(found * target.scale + target.mean, torch.tensor([3.0, 1.5, NONE, NONE]), equal_nan=True)


def test_numbers_that_cannot_be_learnt_are_named_with_their_row() -> None:
    target = fit([1.0, 1.5, 2.5])
    with pytest.raises(DataError, match="nodes, row 2, column y: is infinite"):
        target.encode(pd.Series([1.0, float("inf")]))
    with pytest.raises(DataError, match=r"nodes, row 3, column y: 1e\+60 is too far from the training labels"):
        target.encode(pd.Series([1.0, 2.0, 1e60]))


@given(st.lists(st.sampled_from(["a", "B", "7", "-2", "a b", "é", "yes", None]), min_size=4))
def test_each_label_of_classes_finds_its_own_name(values: list[str | None]) -> None:
    if len(set(values) - {None}) < 2:
        return
    target = fit(values, kind="multiclass")
    found = codes(target, values)
    assert [None if code is None else target.classes[int(code)] for code in found] == values


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, unique=True))
def test_numbers_come_back_from_their_standard_form(values: list[float]) -> None:
    target = fit(values, kind="regression")
    back = target.encode(pd.Series(values)).double() * target.scale + target.mean
    assert float((back - torch.tensor(values, dtype=torch.float64)).abs().max()) <= 1e-4 * target.scale


@pytest.mark.slow
def test_a_hundred_thousand_classes_are_told_apart() -> None:
    names = pd.Series(np.arange(10**5)).sample(frac=1, random_state=0).reset_index(drop=True)
    target = fit(names, kind="multiclass")
    assert target.width == 10**5
    assert (target.encode(names).numpy() == names.to_numpy()).all()


# -- censored numbers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("<-5", -1),
        (">10", 1),
        ("<=3", -1),
        (">= 3", 1),
        ("≤ 2.5", -1),
        (" ≥1e3 ", 1),
        ("=> 7", 1),
        ("<.5", -1),
        ("> +4", 1),
        ("3", 0),
        ("<NA>", 0),
        (">", 0),
    ],
)
def test_a_limit_is_read_with_its_side_however_it_is_written(text: str, side: int) -> None:
    labels = pd.Series(["0.5", "1.5", "2.25", "-1", "8", "9", "11", "12", "13", "14", ">0", text])
    target = fit(labels)
    assert target.kind == "regression"
    censoring = target.encode_censoring(labels)
    assert censoring is not None
    assert censoring.tolist() == [0] * 10 + [1, side]
    limit = target.encode(labels)[-1] * target.scale + target.mean
    number = text.strip(" <>=≤≥")
    assert bool(limit.isnan()) if number in ("", "NA") else float(limit) == pytest.approx(float(number), rel=1e-5)


def test_censored_labels_are_counted_and_where_there_are_none_there_are_no_sides() -> None:
    target = fit(["0.5", ">10", "<-5", ">3", None, "2"])
    assert "3 of 5 labels are censored (1 <, 2 >), where only the wrong side costs" in target.reason
    assert target.encode_censoring(pd.Series(["0.5", "1", None])) is None
    assert target.encode_censoring(pd.Series([0.5, 1.0])) is None
    assert fit(["a", ">10", "b"]).encode_censoring(pd.Series([">10"])) is None
    assert fit([3.5, ">10", None, 1]).kind == "regression"  # numbers and text in one column


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["<5", ">=5"] * 10, "binary"),  # limits alone are two words
        (["<18", "18-30", ">30"] * 10, "multiclass"),
        (["1", "2", "3", ">3"] * 10, "regression"),  # few numbers would be classes, but a limit is none
        (["0", "1", ">1"] * 10, "regression"),
    ],
)
def test_limits_beside_numbers_are_regression_and_limits_alone_are_words(values: Any, kind: str) -> None:
    assert fit(values).kind == kind


def test_a_number_is_scaled_by_exact_labels_and_its_range_stays_open_where_a_label_says_there_is_more() -> None:
    exact = ["1", "2", "3"]
    plain = fit(exact, kind="regression")
    assert (plain.low, plain.high) == (1, 3)
    for limits, ends in (
        ([">10"], (1, None)),
        (["<-5"], (None, 3)),
        ([">2", "<2"], (1, 3)),  # both are within what was measured
        ([">3", "<1"], (None, None)),
    ):
        target = fit(exact + limits)
        assert (target.mean, target.scale) == (plain.mean, plain.scale)
        assert (target.low, target.high) == ends
    limits = target_range([fit([*exact, ">10"]), plain])
    assert limits is not None
    assert limits[1].tolist() == [float("inf"), pytest.approx(1.2247, rel=1e-3)]


def test_training_rows_that_are_all_censored_are_scaled_by_their_limits() -> None:
    target = fit(["1", "2", ">3", ">5", "<2"], rows=torch.tensor([2, 3, 4]))
    assert target.mean == pytest.approx(10 / 3)
    assert "no training row has a number that is none" in target.reason


# -- the positive class ------------------------------------------------------------------------------------------------


def test_the_rarer_class_is_the_positive_one_and_the_word_that_changes_it_is_said() -> None:
    target = fit([1] * 9 + [0])
    assert target.classes == ["1", "0"]
    assert target.reason == "0 or 1; positive: 0 (the rarer, 10 % of the labels), node:y=binary:1 makes it 1"
    assert codes(target, [0, 1]) == [1, 0]
    assert fit(["pos"] * 9 + ["neg"]).classes == ["pos", "neg"]
    assert fit([True] * 9 + [False]).classes == ["True", "False"]


def test_which_class_is_positive_does_not_depend_on_the_rows_that_train() -> None:
    labels = ["a"] * 4 + ["b"] * 6
    assert fit(labels, rows=torch.tensor([0, 1, 2, 3, 4])) == fit(labels, rows=torch.tensor([0, 4, 5, 6, 7, 8]))


@pytest.mark.parametrize(
    ("labels", "positive", "classes"),
    [
        (["pos", "neg"], "neg", ["pos", "neg"]),
        ([0, 1, 1, 1], "1", ["0", "1"]),
        ([0.0, 1.0, 1.0], "1.0", ["0", "1"]),
        (["Yes", "No", "No"], "no", ["Yes", "No"]),
        ([True, False, False], "false", ["True", "False"]),
    ],
)
def test_the_positive_class_can_be_chosen(labels: Any, positive: str, classes: list[str]) -> None:
    target = fit(labels, kind="binary", positive=positive)
    assert target.classes == classes
    assert "makes it" not in target.reason


def test_a_positive_class_that_is_no_label_is_refused_with_the_labels() -> None:
    with pytest.raises(DataError, match="column y: the positive class is 'x', expected one of the labels: 'a', 'b'"):
        fit(["b", "a"], kind="binary", positive="x")


# -- kept in a file ----------------------------------------------------------------------------------------------------


def test_a_target_comes_back_from_its_file() -> None:
    for target in (fit(["a", "b", "c"]), fit([True, False]), fit([1.5, 2.5, 9.0])):
        assert Target.model_validate_json(target.model_dump_json()) == target


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "binary"}, "classes has 3 names, expected 2 for binary"),
        ({"kind": "regression"}, "classes has 3 names, expected none for regression"),
        ({"classes": ["a"]}, "classes has 1 names, expected 2 or more for multiclass"),
        ({"classes": ["a", "a"]}, "classes has a name twice"),
        ({"form": "integer"}, "form is 'integer', expected 'text' for classes such as 'a'"),
        ({"form": "boolean"}, "form is 'boolean'"),
        ({"scale": 0.0}, "scale"),
        ({"mean": float("nan")}, "mean"),
        ({"column": ""}, "column"),
        ({"level": "tree"}, "level"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_target_that_makes_no_sense_is_refused(change: dict[str, Any], message: str) -> None:
    good = fit(["a", "b", "c"]).model_dump()
    with pytest.raises(ValidationError, match=message):
        Target.model_validate(good | change)


def test_a_target_cannot_be_changed_and_says_what_it_is() -> None:
    target = fit([f"c{code}" for code in range(7)])
    with pytest.raises(ValidationError):
        target.mean = 3.0
    assert repr(target) == "Target(node:y, multiclass: c0, c1, c2, c3, c4... 7 in all)"
    assert str(fit([1.0, 1.5, 2.0])) == "Target(node:y, regression: mean 1.5, scale 0.4082)"


def test_outputs_of_targets_are_concatenated() -> None:
    targets = [fit(["a", "b", "c"]), fit([1.5, 2.5, 4.0]), fit([0, 1])]
    assert output_slices(targets) == [slice(0, 3), slice(3, 4), slice(4, 5)]


# -- what the user asks for --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("node:label", ([TargetSpec("node", "label")], False)),
        ("link", ([], True)),
        (["graph: a , b", "link"], ([TargetSpec("graph", "a"), TargetSpec("graph", "b")], True)),
        (
            "edge:amount=number,kind=classes",
            ([TargetSpec("edge", "amount", "regression"), TargetSpec("edge", "kind", "multiclass")], False),
        ),
        ("node:a=b=binary", ([TargetSpec("node", "a=b", "binary")], False)),
        (["node:y", "edge:y"], ([TargetSpec("node", "y"), TargetSpec("edge", "y")], False)),
        ("edge:a:b", ([TargetSpec("edge", "a:b")], False)),
        ('graph:"a, b"', ([TargetSpec("graph", "a, b")], False)),
        ('graph:a,"b, c" , d', ([TargetSpec("graph", name) for name in ("a", "b, c", "d")], False)),
        ('graph:"a, b"=regression', ([TargetSpec("graph", "a, b", "regression")], False)),
        ('graph:"say ""hi"", you"', ([TargetSpec("graph", 'say "hi", you')], False)),
        ('node:"a=b","x:y"=multiclass', ([TargetSpec("node", "a=b"), TargetSpec("node", "x:y", "multiclass")], False)),
        ('node:5" pipe', ([TargetSpec("node", '5" pipe')], False)),  # a quote counts at the start alone, as in CSV
        ("edge:sign=binary:neg", ([TargetSpec("edge", "sign", "binary", "neg")], False)),
        ('edge:s = binary : "a, b",t', ([TargetSpec("edge", "s", "binary", "a, b"), TargetSpec("edge", "t")], False)),
        ("graph:*", ([TargetSpec("graph", "*", every=True)], False)),
        ('graph:"*"', ([TargetSpec("graph", "*")], False)),
        (("graph", "a, b"), ([TargetSpec("graph", "a, b")], False)),
        ([("node", "a", "regression"), "link"], ([TargetSpec("node", "a", "regression")], True)),
        (("edge", "sign", "binary", "neg"), ([TargetSpec("edge", "sign", "binary", "neg")], False)),
        (("node:a", "edge:b"), ([TargetSpec("node", "a"), TargetSpec("edge", "b")], False)),
        (TargetSpec("node", "a"), ([TargetSpec("node", "a")], False)),
    ],
)
def test_targets_are_read(target: Any, expected: tuple[list[TargetSpec], bool]) -> None:
    assert parse_targets(target) == expected


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ([], "there is no target, expected node:COLUMN"),
        ("label", "target is 'label', expected node:COLUMN, edge:COLUMN, graph:COLUMN,COLUMN or link"),
        ("tree:y", "target is 'tree:y', expected"),
        ("node:", "target is 'node:' with a column that has no name"),
        ("node:a,,b", "with a column that has no name"),
        ("link:a", "target is 'link:a', expected"),
        (
            "node:y=colour",
            "with the kind 'colour', expected binary, multiclass, regression or oriented: put a column with",
        ),
        ("node:=number", "with a column that has no name"),
        (["node:y", "node:x,y=number"], "target node:y is given twice, expected each once"),
        ('graph:"a, b', "with a quote that is not closed"),
        ('graph:"a" b', "with 'b' behind a name in quotes, expected , or =KIND"),
        ('graph:"a"=colour', "with the kind 'colour', expected binary, multiclass, regression or oriented"),
        ("edge:sign=binary:", "with no class behind the colon, expected one, as in edge:sign=binary:neg"),
        ("edge:sign=classes:neg", "with the class 'neg', expected one behind binary alone"),
        (3, "target is 3, expected node:COLUMN"),
        ([("node",)], r"target is .'node',., expected .LEVEL, COLUMN."),
        ([7], "target is 7, expected node:COLUMN"),
    ],
)
def test_targets_that_are_none_are_named(target: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_targets(target)


@given(st.text(min_size=1), st.sampled_from([None, "binary", "regression"]), st.none() | st.text(min_size=1))
def test_any_name_comes_back_from_what_a_target_is_written_as(name: str, kind: Any, positive: str | None) -> None:
    spec = TargetSpec("graph", name, kind, positive if kind == "binary" else None)
    assert parse_targets(spec.text) == ([spec], False)
    assert parse_targets([f"node:a,{spec.text.removeprefix('graph:')},b"])[0][1] == replace(spec, level="node")


def test_limits_with_a_comma_before_decimals_are_read_as_the_numbers_beside_them_are() -> None:
    labels = pd.Series(["1,5", "2,25", "0,125", ">10,5", "<= 0,1", "3,75"])
    target = fit(labels)
    found = target.encode(labels) * target.scale + target.mean
    torch.testing.assert_close(found, torch.tensor([1.5, 2.25, 0.125, 10.5, 0.1, 3.75]))
    assert target.encode_censoring(labels).tolist() == [0, 0, 0, 1, -1, 0]


def test_the_older_names_of_kinds_are_still_read() -> None:
    specs, _ = parse_targets(["node:age=number", "node:city=classes"])
    assert [spec.kind for spec in specs] == ["regression", "multiclass"]
    assert Target(level="node", column="age", kind="number").kind == "regression"
    assert Target.fit(pd.Series([1.0, 2.0, 3.5]), "node", "age", kind="number").kind == "regression"
