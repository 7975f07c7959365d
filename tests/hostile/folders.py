"""Folders with missing, doubled, misnamed or unreadable files, with links, pipes and devices."""

from __future__ import annotations

import gzip
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from hostile.accepted import all_used, same_ids, sound
from hostile.place import Place, Refusal, says
from hostile.tables import COMMA, world, write_all

WORLD = world()
MANY = world(many=True)


def checks() -> Iterator[tuple[str, Callable[[Place], None]]]:
    """What is refused, with what the line says; and what is read."""
    for name, (change, words) in REFUSED.items():
        yield f"refused-{name}", partial(_refused, change, words)
    for name, change in READ.items():
        yield f"read-{name}", partial(_read, change)
    for missing in (("nodes",), ("edges",), ("graphs",), ("nodes", "edges"), ("nodes", "graphs"), ("edges", "graphs")):
        yield f"without-{'-and-'.join(missing)}", partial(_without, missing)
    for table, columns in MANY.items():
        for column in columns:
            yield f"without-{table}-{column}", partial(_without_column, table, column)
    for kind in SPECIAL:
        for where in ("folder", "nodes.csv", "edges.csv", "file.csv", "file.parquet", "file"):
            yield f"{kind}-as-{where}", partial(_special, kind, where)


def _plain(place: Place) -> Path:
    return write_all(place.data, WORLD)


def _refused(change: Callable[[Path], object], words: tuple[str, ...], place: Place) -> None:
    folder = _plain(place)
    what = change(folder)
    data = what if isinstance(what, Path) else folder
    says(place.load(data), *words)
    says(place.refusal(place.command("inspect", data)), *words)


def _read(change: Callable[[Path], object], place: Place) -> None:
    folder = _plain(place)
    what = change(folder)
    found = place.load(what if isinstance(what, Path) else folder)
    assert not isinstance(found, Refusal), f"a valid folder was refused: {found}"
    sound(found)
    all_used(found)
    same_ids(found, WORLD)


def _move(folder: Path, one: str, other: str) -> None:
    (folder / one).rename(folder / other)


def _copied(folder: Path, name: str) -> None:
    shutil.copy(folder / "edges.csv", folder / name)


def _emptied(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def _zipped(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "x.zip", "w") as file:
        file.write(folder / "edges.csv", "edges.csv")
    return folder / "x.zip"


def _cut_gzip(folder: Path) -> None:
    data = gzip.compress((folder / "edges.csv").read_bytes())
    (folder / "edges.csv").unlink()
    (folder / "edges.csv.gz").write_bytes(data[: len(data) // 2])


def _not_gzip(folder: Path) -> None:
    _move(folder, "edges.csv", "edges.csv.gz")


def _as(name: str) -> Callable[[Path], Path]:
    def change(folder: Path) -> Path:
        shutil.copy(folder / "edges.csv", folder / name)
        return folder / name

    return change


def _folder_named(folder: Path) -> None:
    (folder / "edges.csv").unlink()
    (folder / "edges.csv").mkdir()


REFUSED: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "missing": (lambda folder: folder / "nowhere", ("nowhere", "no such")),
    "missing-file": (lambda folder: folder / "nowhere.csv", ("nowhere.csv", "no such")),
    "below-a-file": (lambda folder: folder / "edges.csv" / "x", ("x",)),
    "empty": (_emptied, ("edges.csv",)),
    "other-names": (lambda f: (_move(f, "nodes.csv", "people.csv"), _move(f, "edges.csv", "pays.csv")), ("edges",)),
    "excel": (_as("x.xlsx"), ("x.xlsx", ".csv")),
    "json": (_as("x.json"), ("x.json", ".csv")),
    "text": (_as("x.dat"), ("x.dat", ".csv")),
    "no-suffix": (_as("x"), ("x", ".csv")),
    "zip": (_zipped, ("x.zip", ".csv")),
    "csv-as-parquet": (_as("x.parquet"), ("x.parquet", "Parquet")),
    "cut-gzip": (_cut_gzip, ("edges.csv.gz",)),
    "not-gzip": (_not_gzip, ("edges.csv.gz",)),
    "two-files": (lambda f: _copied(f, "edges.tsv"), ("edges.tsv", "edges.csv")),
    "singular-beside": (lambda f: _copied(f, "edge.csv"), ("edge.csv", "edges.csv")),
    "capitals-beside": (lambda f: _copied(f, "EDGES.csv"), ("edges.csv",)),
    "long-name": (lambda folder: folder / ("x" * 300), ("no such",)),
    "very-long-path": (lambda folder: folder / ("x/" * 3000), ("no such",)),
    "nul-in-name": (lambda folder: Path(f"{folder}/a\0b"), ("a",)),
}
READ: dict[str, Callable[[Path], object]] = {
    "plain": lambda folder: None,
    "singular": lambda folder: _move(folder, "edges.csv", "edge.csv"),
    "capitals": lambda folder: _move(folder, "edges.csv", "Edges.CSV"),
    "other-files-beside": lambda folder: (folder / "README.md").write_text("x"),
    "hidden-files": lambda folder: (folder / ".edges.csv.swp").write_bytes(b"\0"),
    "folders-beside": lambda folder: (folder / "old").mkdir(),
    "a-backup": lambda folder: _copied(folder, "edges.csv~"),
    "links": lambda folder: (_move(folder, "edges.csv", "x.csv"), (folder / "edges.csv").symlink_to("x.csv")),
    "slash": lambda folder: Path(f"{folder}/."),
    "dots": lambda folder: folder / ".." / folder.name,
}


def _without(missing: tuple[str, ...], place: Place) -> None:
    """Tables may be absent, as long as there are edges or nodes."""
    kept = {table: cells for table, cells in MANY.items() if table not in missing}
    write_all(place.data, kept)
    found = place.load()
    if isinstance(found, Refusal):
        says(found, "expected")
        assert "edges" not in kept, f"edges are there: {found}"
        return
    sound(found)
    same_ids(found, {table: cells for table, cells in kept.items() if table != "nodes" or "nodes" not in missing})


def _without_column(table: str, column: str, place: Place) -> None:
    """A missing column that is needed is named with its file; one that is not needed is not missed."""
    tables = {name: {k: v for k, v in cells.items() if (name, k) != (table, column)} for name, cells in MANY.items()}
    write_all(place.data, tables)
    found = place.load()
    if isinstance(found, Refusal):
        says(found, ".csv", column)
        assert column in ("id", "source", "target", "graph"), f"{column} is no key: {found}"
        return
    sound(found)
    if column not in ("id", "graph", "source", "target"):
        same_ids(found, tables)


SPECIAL = ("fifo", "null", "zero", "folder", "dangling-link", "loop", "link-to-itself-folder", "unreadable")


def _special(kind: str, where: str, place: Place) -> None:
    """What is no plain file is never opened and waited for; the line names it."""
    _plain(place)
    path = place.data if where == "folder" else place.data / where
    data = path if where.startswith("file") or where == "folder" else place.data
    if where == "folder":
        path = data = place.folder / "special"
    path.unlink(missing_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind in ("null", "zero"):
        path.symlink_to(f"/dev/{kind}")
    elif kind == "folder":
        path.mkdir()
    elif kind == "dangling-link":
        path.symlink_to("nowhere-at-all")
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "link-to-itself-folder":
        path.symlink_to(path.parent, target_is_directory=True)
    else:
        path.write_text(COMMA.text(WORLD["edges"]))
        path.chmod(0)
        if os.geteuid() == 0:
            return  # root reads everything
    found = place.load(data)
    if isinstance(found, Refusal):
        assert path.name in found or data.name in found, f"the file is not named: {found}"
        screen = place.command("inspect", data)
        place.refusal(screen)
        return
    assert kind in ("link-to-itself-folder", "folder", "dangling-link", "loop", "fifo", "null", "zero")
    if where in ("nodes.csv", "edges.csv"):  # a folder whose table is no file: it may not be left out in silence
        raise AssertionError(f"{where} is a {kind}, and the folder was read as if it were not there")
    sound(found)
