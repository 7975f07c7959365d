"""Values of every kind to numbers, and the kind that a column types itself as."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from censnet.data.tables.columns import as_arrow, as_text, read_booleans, read_dates, read_numbers, read_vectors
from censnet.data.tables.feature_encoding import Column
from censnet.data.tables.typed_column import TypedColumn, type_column
from censnet.tasks.targets import Target


def arrow(values: list[object]) -> pa.ChunkedArray:
    return as_arrow(pd.Series(values))


def fit(name: str, values: pa.ChunkedArray, kind: str | None = None, row_normalized: bool = False) -> Column:
    return type_column(name, values, kind, row_normalized).fit()


def refit(column: Column, values: pa.ChunkedArray) -> Column:
    """The statistics of other values, read as this column is."""
    return TypedColumn(column, values, None if column.kind == "category" else column.parse(values)).fit()


def encode(column: Column, values: list[object]) -> tuple[np.ndarray, dict[int, str]]:
    out, given = np.empty((len(values), column.width), np.float32), arrow(values)
    column.encode(given, out)
    return out, {} if column.kind == "category" else column.error_messages(given, column.parse(given))


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("amount", [1.5, 2.0, None], "number"),
        ("amount", [3, 1, 4, 1, 5], "number"),
        ("amount", ["1.5", "2", "", "+3e2"], "number"),
        ("amount", ["1.5", "2", "oops", "4", "7"], "number"),
        ("amount", [Decimal("1.10"), Decimal("2.20")], "number"),
        ("amount", ["1,175.36", "-2,000", "840.1", "+1,234,567."], "number"),
        ("amount", ["1,175", "2,000", "0,125", "12,5"], "number"),  # commas before decimals
        ("amount", ["1,175.5", "2,000", "0,125", "12,5"], "id"),  # two notations
        ("paid", [True, False, None], "boolean"),
        ("paid", ["yes", "no", "yes"], "boolean"),
        ("city", ["Oslo", "Rome", "Oslo", "Rome"], "category"),
        ("grade", ["1", "2", "A", "A", "B", "B", "1", "2"], "category"),
        ("when", [datetime.date(2024, 1, 31), datetime.date(2024, 2, 1)], "date"),
        ("when", [pd.Timestamp("2024-01-31"), pd.Timestamp("2024-02-01 10:00")], "date"),
        ("when", ["2024-01-31", "2024-02-01T10:00:00Z", "2024-03-01"], "date"),
        ("x", [[1.0, 2.0], [3.0, 4.0]], "vector"),
        ("x", ["[1, 2]", "[3 4]", "[5;6]"], "vector"),
        ("memo", ["went to the market to buy bread " * 3, "paid the rent of the flat in may " * 3] * 2, "text"),
        ("memo", [f"word {number} {number % 7}" for number in range(40)] + ["word 1 1"], "text"),
        ("code", ["ab1", "cd2", "ef3", "gh4"], "id"),
        ("customer_id", [5, 5, 9], "id"),
        ("customerId", [5, 5, 9], "id"),
        ("paid", [5, 5, 9], "number"),  # ends in id, but is not one
        ("Unnamed: 0", [0, 1, 2], "id"),
        ("row", [*range(60, 0, -1)], "id"),
        ("rank", [1, 2, 3], "number"),
        ("heat_index", [1, 2, 2], "number"),
        ("split", ["train", "test", "train"], "id"),
        ("unit", ["eur", "eur", None], "constant"),
        ("unit", [7, 7], "constant"),
        ("unit", [0.1, 0.1, 0.1], "constant"),
        ("unit", [np.nan, np.nan], "constant"),
        ("unit", [None, None], "constant"),
        ("blob", [b"a", b"b"], "text"),
        ("nested", [{"a": 1}, {"a": 2}], "text"),
    ],
)
def test_a_column_types_itself(name: str, values: list[object], kind: str) -> None:
    assert fit(name, arrow(values)).kind == kind


def test_numbers_in_text_are_read_and_words_are_bad() -> None:
    parsed = read_numbers(arrow([" 1.5", "-2e3", "+7", ".5", "oops", "", "NA", "inf", "1,5", "0x10", "1_000"]))
    np.testing.assert_array_equal(parsed.numbers[:4], [1.5, -2000, 7, 0.5])
    assert np.isnan(parsed.numbers[4:]).all()
    assert parsed.bad.tolist() == [4, 7, 8, 9, 10]


def test_commas_group_digits_unless_one_stands_before_decimals() -> None:
    grouped = ["1,175.36", " -2,000", "+1,234,567.", "12"]
    np.testing.assert_array_equal(read_numbers(arrow(grouped)).numbers, [1175.36, -2000, 1234567, 12])
    odd = read_numbers(arrow([*grouped, "12,34,567", "1234,567,890", "1,2345,678", "1,,234", "1,234 kg"]))
    assert (odd.bad.tolist(), odd.notation) == ([4, 5, 6, 7, 8], "point")
    for decimal in ("1,5", "12,34", "0,125", "1234,567", "1.175,36", "-,5", "1,5e3"):
        parsed = read_numbers(arrow([*grouped, decimal]))
        assert parsed.notation == "mixed"
        assert parsed.bad.tolist() == [0, 1, 2, 4]


def test_a_later_row_is_read_as_in_training_whatever_stands_beside_it() -> None:
    amounts = [f"{100 * number:,}" for number in range(1, 40)]
    column = fit("amount", arrow(amounts))
    assert encode(column, ["1,000"])[0][0, 0] == encode(column, [1000])[0][0, 0] == encode(column, ["1000"])[0][0, 0]
    assert list(encode(column, ["1,000", "1,5"])[1]) == [1]
    mixed = fit("amount", arrow([*map(str, range(20)), "1,5", "1.5"]))
    assert (mixed.kind, mixed.notation) == ("number", "mixed")
    again = Column.model_validate_json(mixed.model_dump_json(exclude_defaults=True))
    assert encode(again, ["7", "1,000"])[1] == {1: "'1,000' is not a finite number"}
    assert refit(mixed, arrow(["1", "3", "1,000"])).notation == "mixed"  # a kind is not found again, and so is this
    assert refit(mixed, arrow(["1", "3", "1,000"])).mean == [2.0]


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (["3,14", "-0,5", "7", None, "NA"], [3.14, -0.5, 7, np.nan, np.nan]),
        (["1.234,56", "1.234", "12", "+2,5"], [1234.56, 1234, 12, 2.5]),
        (["1,5e3", " ,5", "2e1", "1234567,5"], [1500, 0.5, 20, 1234567.5]),
        (["1,175", "0,125", "2,000"], [1.175, 0.125, 2]),
    ],
)
def test_commas_before_decimals_are_read_where_a_whole_column_agrees(
    values: list[object], numbers: list[float]
) -> None:
    parsed = read_numbers(arrow(values))
    np.testing.assert_allclose(parsed.numbers, numbers)
    assert (parsed.notation, parsed.bad.tolist()) == ("comma", [])
    column = fit("amount", arrow(values))
    assert (column.kind, column.notation) == ("number", "comma")
    out, bad = encode(column, ["1,175", "1.175", "0.5"])  # later rows are read so, too
    assert list(bad) == [2]
    np.testing.assert_allclose((out[1, 0] - out[0, 0]) * column.scale[0], 1175 - 1.175, rtol=1e-5)


def test_labels_are_read_so_too() -> None:
    labels = pd.Series([f"{number:,.2f}" for number in np.linspace(500, 2000, 60)])
    target = Target.fit(labels, "edge", "amount")
    assert (target.kind, target.low, target.high) == ("regression", 500.0, 2000.0)
    assert target.encode(labels).isfinite().all()


def test_one_decimal_comma_far_down_decides_for_the_whole_column() -> None:
    amounts = [f"{number:,}" for number in range(1000, 41_000)]
    assert fit("amount", arrow(amounts)).kind == "number"
    assert fit("amount", arrow([*amounts[:20_001], "1,5", *amounts[20_001:]])).kind != "number"


def test_infinity_is_bad_and_nan_is_missing() -> None:
    parsed = read_numbers(arrow([1.0, np.inf, np.nan, -np.inf]))
    assert parsed.bad.tolist() == [1, 3]
    np.testing.assert_array_equal(parsed.numbers, [1.0, np.nan, np.nan, np.nan])


def test_words_for_truth() -> None:
    parsed = read_booleans(arrow(["Yes", "no", "TRUE", "f", "1", "maybe", None]))
    np.testing.assert_array_equal(parsed.numbers, [1, 0, 1, 0, 1, np.nan, np.nan])
    assert parsed.bad.tolist() == [5]


def test_dates_are_seconds_whatever_their_form() -> None:
    day = 86400.0
    text = read_dates(arrow(["1970-01-02", "1970-01-03T00:00:00Z", "1970-01-02T01:00:00+01:00", "soon", None]))
    np.testing.assert_array_equal(text.numbers, [day, 2 * day, day, np.nan, np.nan])
    assert text.bad.tolist() == [3]
    dates = read_dates(arrow([datetime.date(1970, 1, 2), None]))
    np.testing.assert_array_equal(dates.numbers, [day, np.nan])
    stamps = read_dates(arrow([pd.Timestamp("1970-01-02 00:00:00.5", tz="Europe/Oslo")]))
    np.testing.assert_array_equal(stamps.numbers, [day - 3600 + 0.5])


def test_lists_of_another_length_are_bad() -> None:
    for values in ([[1, 2], [3, 4], None, [5], [np.inf, 1]], ["[1, 2]", "[3 4]", None, "[5]", "[inf, 1]"]):
        parsed = read_vectors(arrow(values), 2)
        np.testing.assert_array_equal(parsed.numbers[:2], [[1, 2], [3, 4]])
        assert parsed.bad.tolist() == [3, 4]


def test_three_is_the_same_category_in_every_type() -> None:
    for values in ([3, 4], [3.0, 4.0], ["3", "4"], [Decimal(3), Decimal(4)]):
        assert as_text(arrow(values)).to_pylist() == ["3", "4"]


def test_nan_is_no_category() -> None:
    values = pa.chunked_array([[1.0, float("nan"), 2.0, None, 1.0]])
    column = fit("grade", values, "category")
    assert column.names == ["grade=1", "grade=2", "grade is another", "grade is missing"]


def test_numbers_are_scaled_and_a_missing_one_is_the_mean_with_an_indicator() -> None:
    column = fit("amount", arrow([1.0, 3.0, None, 5.0]))
    assert column.names == ["amount", "amount is missing"]
    out, bad = encode(column, [3.0, None, 5.0, "oops"])
    deviation = np.std([1.0, 3.0, 5.0])
    np.testing.assert_allclose(out, [[0, 0], [0, 1], [2 / deviation, 0], [0, 0]], rtol=1e-6)
    assert bad == {3: "'oops' is not a finite number"}


def test_a_word_never_seen_counts_as_an_average_row() -> None:
    column = fit("city", arrow(["Rome", "Oslo", None, "Rome", "Rome"]))
    assert column.names == ["city=Oslo", "city=Rome", "city is another", "city is missing"]
    out, bad = encode(column, ["Rome", "Paris", None, "Oslo"])
    assert out.tolist() == [[0, 1, 0, 0], [0.25, 0.75, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0]]
    assert bad == {}
    again = Column.model_validate_json(column.model_dump_json())
    assert encode(again, ["Paris"])[0].tolist() == [[0.25, 0.75, 0, 0]]
    assert column.find_unseen(arrow(["Rome", "Paris", None, "Lima", "Paris"])).to_pylist() == ["Paris", "Lima", "Paris"]
    refitted = refit(column, arrow(["Oslo", "Bern"]))
    assert encode(refitted, ["Rome", None])[0].tolist() == [[0.5, 0.5, 0], [0.5, 0.5, 0]]


def test_an_average_row_has_the_mean_effect_of_the_training_rows() -> None:
    words = ["a"] * 5 + ["b"] * 3 + ["c"] * 2
    column = fit("word", arrow(words))
    weights = np.random.default_rng(0).normal(size=(4, 7))
    effects = encode(column, words)[0] @ weights
    np.testing.assert_allclose(encode(column, ["d", None])[0] @ weights, [effects.mean(0)] * 2, rtol=1e-6)


def test_where_training_rows_had_other_words_a_new_one_is_another() -> None:
    words = [f"w{number}" for number in range(101) for _ in range(3)]
    column = fit("word", arrow(words))
    out, _ = encode(column, ["new", words[-1], None])
    assert out[0].tolist() == [0] * 100 + [1]
    assert sorted(column.categories) == column.categories
    np.testing.assert_allclose(out[2], encode(column, words)[0].mean(0), rtol=1e-5)
    assert len(column.find_unseen(arrow(["new"]))) == 0  # it may be one of those


def test_a_category_without_shares_has_a_place_for_other_words() -> None:
    column = Column(name="city", kind="category", categories=["Oslo", "Rome"])
    assert encode(column, ["Rome", "Paris", None])[0].tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]


def test_only_the_most_frequent_categories_are_kept() -> None:
    words = [f"w{number}" for number in range(150) for _ in range(3)] + ["w7"]
    column = fit("word", arrow(words))
    assert (column.kind, len(column.categories), "w7" in column.categories) == ("category", 100, True)


def test_categories_that_come_back_are_kept_as_far_as_the_table_is_not_long() -> None:
    words = [f"user{number % 300}" for number in range(1600)] + [f"guest{number}" for number in range(60)]
    column = fit("user", arrow(words))
    assert (len(column.categories), column.reason) == (300, "360 categories, of which the 300 most frequent")
    assert len(fit("user", arrow(words * 40)).categories) == 2**24 // (1660 * 40)


def test_truth_values_stay_zero_and_one() -> None:
    column = fit("paid", arrow([True, True, False, None]))
    out, _ = encode(column, [True, False, None])
    np.testing.assert_allclose(out, [[1, 0], [0, 0], [2 / 3, 1]], rtol=1e-6)


def test_each_entry_of_a_vector_is_scaled_as_a_column_of_its_own() -> None:
    words = fit("x", arrow([[0.0, 1.0], [1.0, 0.0]]))
    assert encode(words, [[0.0, 1.0], None])[0].tolist() == [[0, 1], [0.5, 0.5]]
    mixed = fit("x", arrow([[0.0, 100.0, 7], [1.0, 300.0, 7]]))
    assert mixed.names == ["x[0]", "x[1]"]  # the last is always the same
    np.testing.assert_allclose(encode(mixed, [[0.0, 300.0, 7], [1.0, 200.0, 8]])[0], [[0, 1], [1, 0]], atol=1e-6)


@pytest.mark.parametrize("size", [1e308, 1e-300, 1e18, 5e-324])
def test_absurd_sizes_stay_finite(size: float) -> None:
    column = fit("amount", arrow([size, -size, 0.0]))
    if column.width:
        out, _ = encode(column, [size, -size, 0.0, 1e308, -1e308])
        assert np.isfinite(out).all()


def test_a_list_that_arrow_cannot_hold_is_text() -> None:
    assert as_arrow(pd.Series([1, "a", None, 2**70], dtype=object)).to_pylist() == ["1", "a", None, str(2**70)]


def test_vectors_of_counts_become_shares_of_their_row() -> None:
    column = fit("words", arrow([[1, 3], [0, 0], None, [2, 2]]), row_normalized=True)
    out, bad = encode(column, [[30, 10], [0, 0], None, [5]])
    assert (column.kind, column.row_normalized, column.names[-1]) == ("vector", True, "words is missing")
    np.testing.assert_allclose(out[:2], [[0.75, 0.25, 0], [0, 0, 0]])
    np.testing.assert_allclose(out[2], [*column.mean, 1])
    assert list(bad) == [3]
    again = Column.model_validate_json(column.model_dump_json())
    assert refit(again, arrow([[1, 1]])) == fit("words", arrow([[1, 1]]), row_normalized=True)


def test_vectors_with_a_minus_and_plain_numbers_are_no_counts() -> None:
    assert not fit("x", arrow([[1, -3], [0, 0]]), row_normalized=True).row_normalized
    assert fit("age", arrow([1, 3, 4]), row_normalized=True) == fit("age", arrow([1, 3, 4]))
