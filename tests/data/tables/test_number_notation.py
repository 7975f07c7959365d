"""Numbers in other notations are read where a whole column agrees, and told of where it does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from censnet.data import DataError, Tables, load_data
from censnet.pipeline import inspect_data
from censnet.pipeline.prepare import prepare
from censnet.tasks.targets import Target

AMOUNTS = np.round(np.random.default_rng(0).normal(20, 900, 97), 2)


def comma(number: float, grouped: bool = False) -> str:
    """As it is written in Berlin."""
    text = f"{number:,.2f}" if grouped else f"{number:.2f}"
    return text.replace(",", "_").replace(".", ",").replace("_", ".")


def payments(**columns: list[str]) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    ends = pd.DataFrame(rng.integers(0, 20, (97, 2)), columns=["source", "target"])
    return ends.assign(**columns)


def as_tables(**columns: list[str]) -> Tables:
    return Tables(edges=payments(**columns), names={"edges": "edges.csv"})


@pytest.mark.parametrize("separator", [";", ","])
@pytest.mark.parametrize("grouped", [True, False])
def test_a_csv_with_decimal_commas_is_numbers_for_features_and_targets(
    tmp_path: Path, separator: str, grouped: bool
) -> None:
    amounts, labels = ([comma(number, grouped) for number in numbers] for numbers in (AMOUNTS, 2 * AMOUNTS))
    labels[5] = ""
    payments(amount=amounts, y=labels).to_csv(tmp_path / "edges.csv", sep=separator, index=False)
    prepared = prepare(tmp_path, "edge:y")
    (target,) = prepared.targets
    assert (target.kind, target.notation) == ("regression", "comma")
    assert target.reason == "numbers in text, with a comma before decimals"
    told = "edges.csv: column amount: a comma stands before decimals, so 1.175,36 is 1175.36"
    assert told in prepared.data.notes
    column = prepared.data.schema.edges.columns[0]
    train = prepared.splits["edge"].train.numpy()
    np.testing.assert_allclose(column.mean, AMOUNTS[train].mean())
    np.testing.assert_allclose(target.mean, np.delete(2 * AMOUNTS, 5)[train - (train > 5)].mean())
    report = inspect_data(tmp_path, "edge:y")
    assert (report.labels[0].num_classes, report.labels[0].missing) == (0, 1)
    assert report.columns[-1].reason == "numbers with a comma before decimals"


def test_later_labels_are_read_as_in_training() -> None:
    target = Target.fit(pd.Series([comma(number) for number in AMOUNTS]), "edge", "y")
    later = target.encode(pd.Series(["1,175", "1.175", "7"])).numpy() * target.scale + target.mean
    np.testing.assert_allclose(later, [1.175, 1175, 7], rtol=1e-3)


def test_commas_that_may_mean_either_are_told_until_the_user_decides() -> None:
    either = [f"{1 + number % 9},{100 + number}" for number in range(97)]
    tables = as_tables(amount=either, y=either)
    data = load_data(tables, target="edge:y")
    told = [note for note in data.notes if "'1,100' is read as 1100" in note]
    assert [note.split(": ")[0] for note in told] == ["edges.csv, column y", "edges.csv, column amount"]
    assert all("decimal-comma" in note for note in told)
    found = inspect_data(tables, "edge:y").findings
    assert [finding.level for finding in found if "is read as 1100" in finding.what] == ["warning"] * 2
    for kind, mean in (("decimal-comma", 5.1), ("number", 5100)):
        prepared = prepare(tables, "edge:y", overrides={"amount": kind, "y": kind})
        assert not any("is read as" in note for note in prepared.data.notes)
        assert prepared.data.schema.edges.columns[0].mean[0] == pytest.approx(mean, rel=0.2)
        assert prepared.targets[0].mean == pytest.approx(mean, rel=0.2)


def test_two_notations_in_one_column_are_reported_and_not_chosen_between() -> None:
    mixed = [f"{number:.2f}" if row % 2 else comma(number) for row, number in enumerate(AMOUNTS)]
    data = load_data(as_tables(amount=mixed))
    assert data.schema.edges.columns[0].kind != "number"
    (told,) = (note for note in data.notes if "column amount" in note)
    assert told.startswith("edges.csv, column amount: some values have a comma before decimals and some a point")


@pytest.mark.parametrize(
    ("form", "sign"),
    [
        ("{:.1f} %", "a percent sign"),
        ("${:.2f}", "a currency sign"),
        ("{:.2f} EUR", "a currency sign"),
        ("1 {:03.0f}", "digits grouped by spaces"),
        ("1'{:03.0f}.50", "digits grouped by marks"),
        ("{:.1f}-", "a minus behind it"),
        ("1.{:03.0f}.000", "several points"),
    ],
)
def test_numbers_in_another_notation_are_told(form: str, sign: str) -> None:
    values = [form.format(abs(number) % 900) for number in AMOUNTS]
    tables = as_tables(amount=values, y=["a", "b"] * 48 + ["a"])
    for level, target in (("edges.csv, column amount: ", None), ("edges.csv, column amount: ", "edge:amount")):
        notes = load_data(tables, target=target).notes
        assert any(note.startswith(level) and f"look like numbers with {sign}, such as " in note for note in notes)
    findings = inspect_data(tables, "edge:y").findings
    assert any("look like numbers" in finding.what and finding.level == "warning" for finding in findings)


@pytest.mark.parametrize(
    "values",
    [
        [f"{number:.2f}" for number in AMOUNTS],
        [f"{number:,.2f}" for number in AMOUNTS],
        [f"code-{number}" for number in range(97)],
        [f"AB{number}" for number in range(97)],
        [f"2024-01-{1 + number % 28:02d}" for number in range(97)],
        [f"10.0.{number}.1" for number in range(97)],
        ["yes, quite", "no"] * 48 + ["no"],
        [f"[{number}, 2.5]" for number in range(97)],
    ],
)
def test_nothing_is_told_of_plain_numbers_and_of_words(values: list[str]) -> None:
    assert not any("column amount: " in note for note in load_data(as_tables(amount=values)).notes)


def test_lists_that_may_be_something_else_are_told() -> None:
    lists = [f"[{comma(number)}; {comma(number)}]" for number in AMOUNTS]
    losses = [f"({abs(number):.2f})" for number in AMOUNTS]
    notes = load_data(as_tables(pair=lists, loss=losses)).notes
    assert any(
        note.startswith("edges.csv, column pair: ") and "is read as 4 numbers in a list" in note for note in notes
    )
    assert any(
        note.startswith("edges.csv, column loss: ") and "is read as 1 numbers in a list" in note for note in notes
    )


@pytest.mark.slow
def test_a_note_says_how_many_columns_and_names_the_first_few() -> None:
    constants = {f"zero{number}": ["0"] * 97 for number in range(203)}
    odd = {f"share{number}": [f"{value:.1f} %" for value in AMOUNTS] for number in range(12)}
    words = {f"word{number}": ["a", "b"] * 48 + ["a"] for number in range(9)}
    data = load_data(as_tables(**constants, **odd, **words))
    (left_out,) = (note for note in data.notes if "left out" in note)
    assert left_out.startswith(
        "edges.csv: left out 215 columns: zero0, zero1, zero2, zero3, zero4 and 198 more (always"
    )
    assert len(left_out) < 400
    (others,) = (note for note in data.notes if "doubtful notation" in note)
    assert (
        others
        == "7 more columns have numbers in a doubtful notation: share5, share6, share7, share8, share9 and 2 more"
    )
    later = as_tables(**constants, **odd, **{name: ["c"] * 97 for name in words})
    notes = [note for note in load_data(later, schema=data.schema).notes if "no training row had" in note]
    assert (len(notes), notes[-1][:52]) == (6, "4 more columns have words that no training row had: ")


def test_a_row_with_many_bad_values_has_a_short_message() -> None:
    many = {f"x{number}": [str(value) for value in range(97)] for number in range(50)}
    schema = load_data(as_tables(**many)).schema
    later = as_tables(**{name: ["oops", *values[1:]] for name, values in many.items()})
    assert load_data(later, schema=schema).problems["edges"][0].endswith("; and 47 more columns")
    with pytest.raises(DataError, match=r"edges.csv, row 1, column x0: 'oops' is not a finite number"):
        load_data(later, schema=schema, strict=True)
