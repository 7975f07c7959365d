"""Files to frames and back: ids stay as written, nothing is half written, and every fault is named."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.csv
import pytest

from censnet.data import DataError, load_data, read_table, write_table
from censnet.data.tables.files import read_tables


def write(folder: Path, text: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_ids_stay_as_they_were_written(tmp_path: Path) -> None:
    rows = ["007", "12345678901234567890", "2024-01-31", "1.50", "true", "NA"]
    for row in rows:
        frame = read_table(write(tmp_path, f"id,x\n{row},1\n{row},2\n"))
        assert frame["id"].astype(str).tolist() == [row, row] or row == "NA"
    mixed = read_table(write(tmp_path, "id,x\n" + "".join(f"{row},1\n" for row in rows)))
    assert mixed["id"].tolist() == rows


def test_whole_numbers_with_gaps_stay_whole(tmp_path: Path) -> None:
    frame = read_table(write(tmp_path, "id,x\n1,5\n,\n3,7\n"))
    assert frame["id"].tolist() == [1, pd.NA, 3]
    assert frame["x"].tolist() == [5, pd.NA, 7]


def test_a_column_the_user_calls_an_id_is_not_rounded(tmp_path: Path) -> None:
    path = write(tmp_path, "payer,x\n12345678901234567890,1\n12345678901234567891,2\n")
    assert read_table(path, keys=["payer"])["payer"].nunique() == 2


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_encodings_with_a_mark_and_separators_are_found(tmp_path: Path, encoding: str, mark: str) -> None:
    text = f"id{mark}city\n1{mark}Orléans\n2{mark}\n"
    frame = read_table(write(tmp_path, text.encode(encoding)))
    assert list(frame.columns) == ["id", "city"]
    assert frame["city"].tolist() == ["Orléans", pd.NA]


def test_line_breaks_and_quotes_within_a_field_and_gzip(tmp_path: Path) -> None:
    text = 'id,memo\r\n1,"two\nlines, and ""quotes"""\r\n2,x\r\n'
    for path in (write(tmp_path, text), write(tmp_path, gzip.compress(text.encode()), "t.csv.gz")):
        assert read_table(path)["memo"].tolist() == ['two\nlines, and "quotes"', "x"]


def test_a_field_longer_than_a_block_is_read(tmp_path: Path) -> None:
    long = "C" * 9_000_000
    assert read_table(write(tmp_path, f"id,smiles\n1,{long}\n"))["smiles"].tolist() == [long]


def test_a_large_file_may_change_its_types_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("censnet.data.tables.csv_files._LARGE", 0)
    monkeypatch.setattr("censnet.data.tables.csv_files._BLOCK", 1000)
    lines = [f"{number},{number}," for number in range(1000)]
    frame = read_table(write(tmp_path, "id,x,y\n" + "\n".join(lines) + "\n"))
    assert frame["x"].tolist() == list(range(1000))
    frame = read_table(write(tmp_path, "id,x,y\n" + "\n".join([*lines, "a-7,1.5,late"]) + "\n"))
    assert frame["id"].tolist() == [*map(str, range(1000)), "a-7"]
    assert frame["x"].tolist() == [*range(1000), 1.5]
    assert frame["y"].tolist() == [pd.NA] * 1000 + ["late"]
    with pytest.raises(DataError, match="row 1001: has 1 fields, expected 3"):
        read_table(write(tmp_path, "id,x,y\n" + "\n".join([*lines, "7"]) + "\n"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "t.csv: is empty"),
        (b"\n\n", "t.csv: is empty"),
        (b"id,x\n1,2\n3\n", r"t.csv, row 2: has 1 fields, expected 2: '3'"),
        (b"id,x\n1,2\n3,4,5\n", r"t.csv, row 2: has 3 fields, expected 2: '3,4,5'"),
        (b"id,id\n1,2\n", r"t.csv, column 'id': occurs 2 times"),
        ("id,city\n1,Orléans\n".encode("latin-1"), "t.csv: is not UTF-8 text.*save it as UTF-8"),
        ("id,x\n1,2\n".encode("utf-16-le"), "t.csv: holds NUL bytes"),
        (b"id,x\n" + b"1,2\n" * 600_000 + b"1,\xff\n", "t.csv, column x: is not UTF-8 text"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_table(write(tmp_path, content))


def test_a_wrong_path_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected a file that ends in \.csv"):
        read_table(write(tmp_path, "x", "t.xlsx"))
    with pytest.raises(DataError, match=r"none.csv: there is no such file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(DataError, match=r"t.parquet: is not a Parquet file that can be read"):
        read_table(write(tmp_path, "id,x\n", "t.parquet"))


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.parquet"])
def test_what_is_written_is_read_back(tmp_path: Path, name: str) -> None:
    frame = pd.DataFrame(
        {
            "id": ["a,b", 'say "x"', "c\nd"],
            "count": pd.array([1, None, 3], dtype="Int64"),
            "x": [0.1, np.nan, 1e-300],
            "day": pd.to_datetime(["2024-01-31", None, "2024-02-01"]),
            "ok": [True, False, True],
        }
    )
    write_table(frame, tmp_path / name)
    back = read_table(tmp_path / name)
    assert list(back.columns) == list(frame.columns)
    assert back["id"].tolist() == frame["id"].tolist()
    assert back["count"].tolist() == [1, pd.NA, 3]
    np.testing.assert_array_equal(back["x"].to_numpy(dtype=float, na_value=np.nan), frame["x"])
    assert back["day"].isna().tolist() == [False, True, False]
    assert back["ok"].tolist() == [True, False, True]


def test_lists_survive_a_text_file(tmp_path: Path) -> None:
    write_table(pd.DataFrame({"x": [[1.5, 2.0], [3.0, -4.0]]}), tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv")["x"].tolist() == ["[1.5, 2]", "[3, -4]"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "old")

    def fail(_table: object, file: object, *_: object) -> None:
        file.write(b"half")  # type: ignore[attr-defined]
        raise OSError("disk full")

    monkeypatch.setattr(pyarrow.csv, "write_csv", fail)
    with pytest.raises(DataError, match="cannot be written: disk full"):
        write_table(pd.DataFrame({"a": [1]}), path)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]


def test_a_folder_is_its_tables(tmp_path: Path) -> None:
    write(tmp_path, "id,x\n1,2\n", "nodes.csv")
    write(tmp_path, "source\ttarget\n1\t1\n", "edges.tsv")
    write(tmp_path, "ignored", "README.md")
    tables = read_tables(tmp_path)
    assert sorted(tables.frames()) == ["edges", "nodes"]
    assert (tables.name("edges"), tables.name("graphs")) == ("edges.tsv", "graphs")
    write(tmp_path, "source,target\n", "edges.csv")
    with pytest.raises(DataError, match=r"edges.tsv: stands beside edges.csv, expected one file of edges"):
        read_tables(tmp_path)


def test_a_single_file_is_edges_or_molecules(tmp_path: Path) -> None:
    assert read_tables(write(tmp_path, "src,dst\n1,2\n")).edges is not None
    assert read_tables(write(tmp_path, "SMILES,exp\nCC,2\n")).graphs is not None
    with pytest.raises(DataError, match=r"t.csv: has the columns a, b, expected source and target, or smiles"):
        read_tables(write(tmp_path, "a,b\n1,2\n"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no nodes, edges or graphs table"):
        read_tables(tmp_path / "empty")


WRITTEN = ("007", "0x0D", " 1", "1 ", "-0", "+1", "1.0", "1e3", "True", "2024-01-01", "00", "18446744073709551615")


@pytest.mark.parametrize("odd", WRITTEN)
@pytest.mark.parametrize("column", ["id", "source", "target", "graph", "payer"])
def test_one_id_far_down_that_is_no_plain_integer_leaves_all_as_written(tmp_path: Path, odd: str, column: str) -> None:
    """The odd one lies beyond the lines that are looked at first."""
    ids = [*map(str, range(2500)), odd, "7"]
    path = write(tmp_path, f"{column},x\n" + "".join(f"{name},1\n" for name in ids))
    assert read_table(path, keys=["payer"])[column].tolist() == ids


def test_integers_with_gaps_are_integers_if_every_row_is_one(tmp_path: Path) -> None:
    ids = [*map(str, range(-3, 2500)), "NA", "", "12"]
    frame = read_table(write(tmp_path, "id,x\n" + "".join(f"{name},1\n" for name in ids)))
    assert frame["id"].tolist() == [*range(-3, 2500), pd.NA, pd.NA, 12]


def test_a_column_of_numbers_keeps_words_that_a_number_would_lose(tmp_path: Path) -> None:
    for odd in ("01067", "0x1F"):
        codes = [*map(str, range(10_000, 12_500)), odd]
        frame = read_table(write(tmp_path, "id,zip\n" + "".join(f"a{code},{code}\n" for code in codes)))
        assert frame["zip"].tolist() == codes


@pytest.mark.parametrize(("last", "expected"), [(" 5", 5), ("5.5", 5.5), ("1e3", 1000.0), ("late", "late")])
def test_a_column_that_starts_as_integers_is_what_all_of_it_is(tmp_path: Path, last: str, expected: object) -> None:
    rows = "".join(f"a{number},{number}\n" for number in range(2500))
    assert read_table(write(tmp_path, f"id,x\n{rows}z,{last}\n"))["x"].iloc[-1] == expected


def test_columns_after_a_short_row_are_read_as_written(tmp_path: Path) -> None:
    path = write(tmp_path, 'w,source,target\n1,007,"a\nb"\n2,7,8\n')
    assert read_table(path)["source"].tolist() == ["007", "7"]
    assert read_table(path)["target"].tolist() == ["a\nb", "8"]


def test_a_folder_in_the_place_of_a_table_is_no_missing_table(tmp_path: Path) -> None:
    write(tmp_path, "source,target\na,b\n", "edges.csv")
    (tmp_path / "nodes.parquet").mkdir()  # as other tools write a table in pieces
    with pytest.raises(DataError, match=r"nodes\.parquet: is a folder, expected a file"):
        read_tables(tmp_path)


@pytest.mark.parametrize("name", ["x" * 300, "x/" * 3000, "a\0b"])
def test_a_name_that_no_file_can_have_is_a_file_that_is_not_there(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file") as error:
        load_data(tmp_path / name)
    assert len(str(error.value)) < 300
