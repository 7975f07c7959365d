"""Tables on disk: CSV and Parquet to pandas and back; whole numbers with gaps, lists and text stay what they are."""

from __future__ import annotations

import copy
import io
import os
import stat
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from censnet.data.tables.csv_files import read_csv
from censnet.data.tables.keys import TABLES, find_key
from censnet.data.tables.notes import Note, RowError
from censnet.data.tables.suggest_keys import ends_hint
from censnet.errors import DataError, name_columns, quote
from censnet.files import atomic_file
from censnet.levels import COLUMN_LEVELS, Level

SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".pq")
MOLECULES = {"molecules": "graphs", "bonds": "edges", "atoms": "nodes"}  # names of files, if there are no others
STRUCTURES = (".smi", ".smi.gz", ".smiles", ".sdf", ".sdf.gz", ".sd", ".mol")  # molecules: `molecules.structure_files`


class Tables:
    """The tables of a data set by level, of which any may be absent, and what they are called in messages.

    Args:
        nodes: one row for each node: `id`, and `graph` when there are many graphs.
        edges: one row for each edge: `source`, `target`, and `graph`.
        graphs: one row for each graph: `graph`, or a column of SMILES.
        names: table -> name of its file.
        unreadable: row of `graphs`, counted from 0 -> why there is no molecule in it, where the file says no more.
        notes: what the user should know of how the files were read.
        directed: whether edges have a direction, where their source says so, as networkx does.

    Attributes:
        by_level: level -> its table, of those that are there.
    """

    def __init__(
        self,
        nodes: pd.DataFrame | None = None,
        edges: pd.DataFrame | None = None,
        graphs: pd.DataFrame | None = None,
        names: Mapping[str, str] | None = None,
        unreadable: Mapping[int, RowError] | None = None,
        notes: Sequence[Note] = (),
        directed: bool | None = None,
    ) -> None:
        every = {Level.NODE: nodes, Level.EDGE: edges, Level.GRAPH: graphs}
        self.by_level = {level: frame for level, frame in every.items() if frame is not None}
        self.names, self.unreadable, self.notes = dict(names or {}), dict(unreadable or {}), list(notes)
        self.directed = directed

    @property
    def nodes(self) -> pd.DataFrame | None:
        """The table of nodes."""
        return self.by_level.get(Level.NODE)

    @property
    def edges(self) -> pd.DataFrame | None:
        """The table of edges."""
        return self.by_level.get(Level.EDGE)

    @property
    def graphs(self) -> pd.DataFrame | None:
        """The table of graphs."""
        return self.by_level.get(Level.GRAPH)

    def name(self, table: str) -> str:
        """The file of a table, or the table's own name when it never was a file."""
        return self.names.get(table, table)

    def frames(self) -> dict[str, pd.DataFrame]:
        """The tables that are there, by name."""
        return {level.table: frame for level, frame in self.by_level.items()}

    def with_frames(self, frames: Mapping[str, pd.DataFrame], names: Mapping[str, str] | None = None) -> Tables:
        """The same with other tables, by name, and other names of files."""
        every, changed = self.frames() | dict(frames), copy.copy(self)
        changed.by_level = {level: every[level.table] for level in COLUMN_LEVELS if level.table in every}
        changed.names = self.names | dict(names or {})
        return changed

    def only(self, *levels: Level) -> Tables:
        """The same without the tables of other levels."""
        changed = copy.copy(self)
        changed.by_level = {level: frame for level, frame in self.by_level.items() if level in levels}
        return changed


def read_table(path: str | os.PathLike[str], keys: Sequence[str] = ()) -> pd.DataFrame:
    """Read a CSV or Parquet file into a frame whose columns are Arrow's.

    Args:
        path: a file that ends in .csv, .tsv, .parquet or .pq; text may be gzipped.
        keys: columns of ids beyond those known by name. An id is never rounded, dated or stripped of its zeros.
    """
    path = Path(path)
    check_table_file(path)
    try:
        table = _read_parquet(path) if is_parquet(path) else read_csv(path, keys)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or _first_line(error)}", path.name) from None
    return to_frame(table, path.name)


def check_table_file(path: Path) -> None:
    """Raise unless this is a file that can be a table, by its name."""
    if _suffix(path) is None:
        raise DataError(f"expected a file that ends in {', '.join((*SUFFIXES, '.smi', '.sdf'))}", str(path))
    check_file(path)
    if not str(path).isascii() and any("\udc80" <= letter <= "\udcff" for letter in str(path)):
        raise DataError("has bytes in its name or path that are no text, expected UTF-8: rename it", str(path))


def check_file(path: Path, folder: bool = False) -> None:
    """Raise unless this is a file, or a folder where one may be. A pipe or a device, which may have no end, is not."""
    if path.is_file() or (folder and path.is_dir()):
        return
    if not is_there(path):
        raise DataError(f"there is no such file{' or folder' if folder else ''}", str(path))
    what, found = "a file or a folder" if folder else "a file", describe_file(path)
    hint = "" if path.is_dir() else ": write what comes out of it to a file first"
    raise DataError(f"is {found}, expected {what}{hint}", str(path))


def is_there(path: Path) -> bool:
    """Whether a path exists; one that no file can have, since it is too long or holds a NUL, does not."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def describe_file(path: Path) -> str:
    """A file, a folder, or what else is there, in words.

    >>> describe_file(Path("/dev/null"))
    'a device'
    """
    mode = path.stat().st_mode
    kinds = {
        "a folder": stat.S_ISDIR(mode),
        "a pipe": stat.S_ISFIFO(mode),
        "a socket": stat.S_ISSOCK(mode),
        "a device": stat.S_ISCHR(mode) or stat.S_ISBLK(mode),
    }
    return next((kind for kind, fits in kinds.items() if fits), "a file")


def to_frame(table: pa.Table, name: str) -> pd.DataFrame:
    """An Arrow table as a frame without a copy, its names checked."""
    check_names(table.column_names, name)
    frame: pd.DataFrame = table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)
    return frame


def check_names(names: Iterable[object], file: str) -> None:
    """Raise unless the names of the columns are text and differ."""
    names = list(names)
    if not names:
        raise DataError("has no column", file)
    for name in names:
        if not isinstance(name, str) or name == "":
            raise DataError(f"has a column called {quote(name)}, expected a name in letters", file)
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise DataError(f"occurs {count} times (give each column its own name)", file, column=quote(name))


def write_table(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a frame as CSV or Parquet, whole or not at all: a reader never sees half a file."""
    path = Path(path)
    kind = check_written_name(path)
    table = _from_frame(frame, path.name)
    try:
        with atomic_file(path) as file:
            if kind in (".parquet", ".pq"):
                pa.parquet.write_table(table, file)
            else:
                _write_csv(table, file, "\t" if kind == ".tsv" else ",")
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"cannot be written: {_first_line(error)}", str(path)) from None


def check_written_name(path: Path) -> str:
    """The kind of file to be written; raise unless it is a table, by its name."""
    kind = _suffix(path)
    if kind is None or kind.endswith(".gz"):
        raise DataError("expected a name that ends in .csv, .tsv, .parquet or .pq", str(path))
    return kind


def to_csv(frame: pd.DataFrame, name: str) -> bytes:
    """A frame as `write_table` writes it to a CSV file of this name."""
    file = io.BytesIO()
    _write_csv(_from_frame(frame, name), file, ",")
    return file.getvalue()


def _from_frame(frame: pd.DataFrame, name: str) -> pa.Table:
    check_names(frame.columns, name)
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except pa.ArrowException as error:
        raise DataError(f"cannot be written: {_first_line(error)}", name) from None


def _write_csv(table: pa.Table, file: IO[bytes], delimiter: str) -> None:
    options = pa.csv.WriteOptions(delimiter=delimiter, quoting_style="needed")
    pa.csv.write_csv(lists_as_text(table), file, options)


def read_tables(source: str | os.PathLike[str], roles: Mapping[str, str] | None = None) -> Tables:
    """Read a folder with the files `nodes`, `edges`, `graphs`, or one file of edges or of SMILES.

    Args:
        source: the folder or the file.
        roles: column -> `id`, `source`, `target`, `graph` or `smiles`, where its name does not say so.
    """
    keys = list(roles or {})
    source = Path(source)
    check_file(source, folder=True)
    if source.is_file():
        frame = read_table(source, keys)
        return as_tables(frame, source.name, roles)
    frames: dict[str, pd.DataFrame] = {}
    files = find_tables(source)
    for table, path in files.items():
        frames[table] = read_table(path, keys)
        if table != "edges":
            _check_rows(frames[table], path.name)
    return Tables().with_frames(frames, {table: path.name for table, path in files.items()})


def find_tables(folder: Path) -> dict[str, Path]:
    """Table -> its file, in a folder."""
    try:
        inside = sorted(folder.iterdir())
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", str(folder)) from None
    found = dict[str, Path]()
    for path, table in _tables_of(inside):
        if table is not None and table in found:
            raise DataError(f"stands beside {found[table].name}, expected one file of {table}", path.name)
        if table is not None:
            found[table] = path
    if not found:
        raise DataError("holds no nodes, edges or graphs table, expected files such as edges.csv", str(folder))
    return found


def _tables_of(paths: Sequence[Path]) -> list[tuple[Path, str | None]]:
    """The table that each file is by its name. Files of molecules, bonds and atoms are tables if there is no other."""
    stems = [path.name.split(".")[0].lower().removesuffix("s") + "s" for path in paths if _suffix(path) is not None]
    known = dict(zip(TABLES, TABLES, strict=True))
    if not {"nodes", "edges"} & set(stems):
        known |= {stem: table for stem, table in MOLECULES.items() if stem != "molecules" or "graphs" not in stems}
    files = [path for path in paths if _suffix(path) is not None]
    return [(path, known.get(stem)) for path, stem in zip(files, stems, strict=True)]


def as_tables(frame: pd.DataFrame, name: str, roles: Mapping[str, str] | None = None) -> Tables:
    """One frame as the table it is: edges when it has two ends, graphs when it has SMILES."""
    check_names(frame.columns, name)
    _check_rows(frame, name)
    played = {role for column, role in (roles or {}).items() if column in frame.columns}
    played |= {role for role in ("source", "target", "smiles") if find_key(frame.columns, role)}
    if {"source", "target"} <= played:
        table = "edges"
    elif "smiles" in played:
        table = "graphs"
    else:
        columns = name_columns(frame.columns)
        known = {role: column for role in ("source", "target") if (column := _played(frame, role, roles)) is not None}
        hint = ends_hint(frame, known)
        raise DataError(f"has the columns {columns}, expected source and target, or smiles {hint}", name)
    return Tables().with_frames({table: frame}, {table: name})


def _check_rows(frame: pd.DataFrame, name: str) -> None:
    if len(frame) == 0:
        raise DataError("has names of columns and no row below them, expected at least one row", name)


def _played(frame: pd.DataFrame, role: str, roles: Mapping[str, str] | None) -> str | None:
    """The column that plays a role, by the user's word or by its name."""
    chosen = (column for column, other in (roles or {}).items() if other == role and column in frame.columns)
    return next(chosen, None) or find_key(frame.columns, role)


def _suffix(path: Path) -> str | None:
    name = path.name.lower()
    return next((suffix for suffix in SUFFIXES if name.endswith(suffix)), None)


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet by its name; a folder of that name has the files of one table."""
    return _suffix(path) in (".parquet", ".pq")


def _read_parquet(path: Path) -> pa.Table:
    try:
        table = pa.parquet.read_table(path, partitioning=None)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"is not a Parquet file that can be read: {_first_line(error)}", path.name) from None
    return table.select([number for number, name in enumerate(table.column_names) if name != "__index_level_0__"])


def lists_as_text(table: pa.Table) -> pa.Table:
    """Lists as `[1, 2, 3]`: a CSV file has no other place for them, and they are read back as vectors."""
    for number, column in enumerate(table.schema):
        kind = column.type
        if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
            items = pc.cast(pc.cast(table[number], pa.list_(kind.value_type)), pa.list_(pa.string()))
            if pc.list_flatten(items).null_count:  # an entry that is missing leaves the others
                known = [row and ["nan" if entry is None else entry for entry in row] for row in items.to_pylist()]
                items = pa.chunked_array([pa.array(known, items.type)])
            joined = pc.binary_join(items, ", ")
            text = pc.binary_join_element_wise("[", joined, "]", "")
            table = table.set_column(number, column.name, text)
    return table


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return quote(lines[0], 200)[1:-1] if lines else type(error).__name__
