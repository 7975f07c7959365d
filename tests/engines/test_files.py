"""A CSV file that is rewritten batch by batch has the types that it has when it is read whole."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from censnet.data.tables.csv_files import read_csv
from censnet.engines.files import open_table, open_tables
from censnet.errors import DataError

TABLE = """\
id,source,target,whole,odd,plain,number,late,words,truth,empty,day
1,007,1,1,1,1,1.5,1,a,true,,2024-01-31
2,8,2.0,,007,+2,NA,2,b,false,NA,2024-02-01
3,9,x,-3,3,3.5,3,three,,true,,
"""


def write(path: Path, columns: dict[str, list[str]]) -> Path:
    lines = [",".join(row) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join([",".join(columns), *lines]) + "\n")
    return path


@pytest.mark.parametrize("repeat", [1, 500])
def test_types_are_those_of_the_whole_file(repeat: int, tmp_path: Path) -> None:
    head, *lines = TABLE.splitlines(keepends=True)
    path = tmp_path / "edges.csv"
    path.write_text("".join([head, *lines * repeat]))
    file, whole = open_table(path, ["id"], tmp_path), read_csv(path, ["id"])
    found = pa.Table.from_batches([file.cast(batch) for batch in file.batches(700)])
    assert found.schema.equals(file.schema)
    for name in whole.column_names:
        assert found[name].to_pylist() == whole[name].to_pylist(), name
        assert found[name].type == whole[name].type, name


def test_a_column_of_later_words_is_text_whatever_the_first_block_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("censnet.engines.files._BLOCK", 256)
    columns = {"source": ["a"] * 99, "target": ["b"] * 99, "amount": ["1.5"] * 98 + ["much"], "gap": [""] * 98 + ["4"]}
    file = open_table(write(tmp_path / "edges.csv", columns), [], tmp_path)
    assert [file.schema.field(name).type for name in ("amount", "gap")] == [pa.string(), pa.int64()]


def test_wrong_files_are_one_line(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with pytest.raises(DataError, match="holds no nodes, edges or graphs table"):
        open_tables(data, {}, tmp_path)
    write(data / "edges.csv", {"source": [], "target": []})
    with pytest.raises(DataError, match=r"edges\.csv: has names of columns and no row below them"):
        open_tables(data, {}, tmp_path)
    (data / "edges.csv").write_text("source,target\na,b\na,b,c\n")
    with pytest.raises(DataError, match=r"edges\.csv, row 2: has 3 fields, expected 2"):
        open_tables(data, {}, tmp_path)
    with pytest.raises(DataError, match="expected a file that ends in"):
        open_tables(write(tmp_path / "edges.txt", {"source": ["a"]}), {}, tmp_path)
