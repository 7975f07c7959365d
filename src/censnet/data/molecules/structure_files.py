"""Files of molecules: SMILES with names (.smi), and connection tables with properties (.sdf, .mol), as tables."""

from __future__ import annotations

import csv
import gzip
import re
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from censnet.data.molecules.atoms_and_bonds import read_blocks
from censnet.data.molecules.featurize import map_smiles
from censnet.data.tables.csv_files import read_csv
from censnet.data.tables.files import STRUCTURES, Tables, to_frame
from censnet.data.tables.keys import ROLES, names_smiles
from censnet.data.tables.notes import Note, RowError
from censnet.errors import DataError, quote

SMILES, NAME = "smiles", "name"
_PROPERTY = re.compile(r">.*?<([^>]*)>")


class Record(NamedTuple):
    """One record of an SDF file: the connection table, and the properties behind it."""

    block: str
    properties: dict[str, str]


def is_structure_file(path: Path) -> bool:
    """Whether the name of a file says that it holds molecules."""
    return path.name.lower().endswith(STRUCTURES)


def read_structures(path: Path) -> Tables:
    """A file of molecules as a table of SMILES, one row for each molecule, in its order.

    A .smi file has a SMILES on each line and, behind white space, a name; a first line whose first word is the name of
    a SMILES column (`smiles`) names the columns. Of an SDF file each property becomes a column, the title becomes
    `name`, and the SMILES are made of the connection tables, by rdkit. Coordinates are no features.
    """
    text = _read_text(path)
    if ".smi" in _suffix(path):
        return Tables(graphs=_typed(*_read_lines(text, path.name), path), names={"graphs": path.name})
    records = _split_records(text, is_single=_suffix(path).startswith(".mol"))
    if not records:
        raise DataError("has no record, expected a molecule", path.name)
    blocks = map_smiles(read_blocks, [record.block for record in records], None)
    read = [found for part in blocks for found in part]
    names, rows = _columns(records, [found.smiles for found in read])
    notes = list[Note]()
    spatial = sum(found.is_spatial for found in read)
    if spatial:
        what = "coordinates are not read, but for stereochemistry: a molecule is its atoms and bonds"
        notes.append(Note("molecule", f"{path.name}: {spatial:,} of {len(read):,} molecules are in 3-D; {what}"))
    bad = {row: RowError("no molecule in the record", found.problem) for row, found in enumerate(read) if found.problem}
    return Tables(graphs=_typed(names, rows, path), names={"graphs": path.name}, unreadable=bad, notes=notes)


def _read_text(path: Path) -> str:
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.name.lower().endswith(".gz") else content
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot be read: {getattr(error, 'strerror', None) or error}", path.name) from None
    if not content.strip():
        raise DataError("is empty", path.name)
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(f"line {line} is not UTF-8 text (save it as UTF-8)", path.name) from None


def _read_lines(text: str, file: str) -> tuple[list[str], list[list[str]]]:
    """The names of the columns of a .smi file, and its rows. A blank line is a row without a SMILES."""
    lines = text.rstrip().split("\n")
    first = lines[0].split()
    if first and (first[0].lower() in ROLES["smiles"] or names_smiles(first[0])):
        delimiter = "\t" if "\t" in lines[0] else None
        names = [name.strip() for name in lines[0].split(delimiter)]
        rows = [line.strip("\n").split(delimiter, len(names) - 1) for line in lines[1:]]
        if not rows:
            raise DataError("has no row under the names of its columns", file)
    else:
        names, rows = [SMILES, NAME], [line.split(None, 1) for line in lines]
    width = max(len(row) for row in rows)
    names = names[: max(width, 1)] if names == [SMILES, NAME] else names
    return names, [[cell.strip() for cell in row] + [""] * (len(names) - len(row)) for row in rows]


def _split_records(text: str, is_single: bool) -> list[Record]:
    """The records of an SDF file, which lines `$$$$` end; a .mol file is one."""
    parts = [text] if is_single else re.split(r"^\$\$\$\$.*(?:\n|\Z)", text, flags=re.MULTILINE)
    if len(parts) > 1 and not parts[-1].strip():
        parts.pop()
    records = []
    for part in parts:
        block, end, rest = part.partition("\nM  END")
        records.append(Record(block + end + "\n", _read_properties(rest)))
    return records


def _read_properties(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    name: str | None = None
    for line in text.split("\n"):
        match = _PROPERTY.match(line)
        if match is not None:
            name = match[1].strip()
            found.setdefault(name, "")
        elif name is not None and line.strip():
            found[name] = f"{found[name]}\n{line.strip()}".strip()
        elif not line.strip():
            name = None
    return {name: value for name, value in found.items() if name}


def _columns(records: Sequence[Record], smiles: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """The columns of a table: SMILES, title and properties. A property with the name of one of these gets a `_`."""
    titles = [record.block.split("\n", 1)[0].strip() for record in records]
    own = [SMILES, *([NAME] if any(titles) else [])]
    keys = list(dict.fromkeys(name for record in records for name in record.properties))
    names = list(own)
    for key in keys:
        while key in names:
            key += "_"
        names.append(key)
    rows = []
    for record, title, text in zip(records, titles, smiles, strict=True):
        rows.append([text, title][: len(own)] + [record.properties.get(key, "") for key in keys])
    return names, rows


def _typed(names: Sequence[str], rows: Sequence[Sequence[str]], path: Path) -> pd.DataFrame:
    """Texts as the columns that a CSV file with them would have."""
    for row, cells in enumerate(rows):
        if len(cells) > len(names):
            raise DataError(f"has {len(cells)} fields, expected {len(names)}: {quote(' '.join(cells))}", path.name, row)
    name = path.name.removesuffix(".gz")
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / name
        with copy.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(names)
            writer.writerows(rows)
        return to_frame(read_csv(copy, [SMILES]), path.name)


def _suffix(path: Path) -> str:
    return next(suffix for suffix in STRUCTURES if path.name.lower().endswith(suffix))
