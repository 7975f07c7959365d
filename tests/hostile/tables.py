"""Valid tables to spoil, and every way to write them as text."""

from __future__ import annotations

import csv
import gzip
import io
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Table = dict[str, list[str]]
PLAIN = [str(number) for number in range(100, 112)]


@dataclass(frozen=True)
class Dialect:
    """How a table is written.

    Args:
        delimiter, encoding, newline, gz: of the file; `bom` puts a mark before UTF-8.
        quoting: `needed` or `all`.
        end: what follows the last row.
    """

    delimiter: str = ","
    encoding: str = "utf-8"
    newline: str = "\n"
    quoting: str = "needed"
    end: str = "newline"
    gz: bool = False

    @property
    def suffix(self) -> str:
        return (".tsv" if self.delimiter == "\t" else ".csv") + (".gz" if self.gz else "")

    @property
    def name(self) -> str:
        marks = {",": "comma", ";": "semicolon", "\t": "tab"}
        parts = [marks[self.delimiter], self.encoding, {"\n": "lf", "\r\n": "crlf", "\r": "cr"}[self.newline]]
        return "-".join([*parts, *(["quoted"] if self.quoting == "all" else []), *(["gz"] if self.gz else [])])

    def text(self, table: Mapping[str, Sequence[str]]) -> str:
        file = io.StringIO(newline="")
        broken = any("\r" in cell for column in table.items() for cell in (column[0], *column[1]))
        quoting = csv.QUOTE_ALL if self.quoting == "all" or broken else csv.QUOTE_MINIMAL
        writer = csv.writer(file, delimiter=self.delimiter, lineterminator=self.newline, quoting=quoting)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
        text = file.getvalue()
        if self.end == "none":
            text = text.removesuffix(self.newline)
        return text + (self.newline * 3 if self.end == "blank" else "")

    def write(self, folder: Path, name: str, table: Mapping[str, Sequence[str]]) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / (name + self.suffix)
        data = self.text(table).encode(self.encoding)
        path.write_bytes(gzip.compress(data, mtime=0) if self.gz else data)
        return path


COMMA = Dialect()
DIALECTS = [
    Dialect(delimiter, encoding, newline, quoting)
    for delimiter in (",", ";", "\t")
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32")
    for newline in ("\n", "\r\n")
    for quoting in ("needed", "all")
]
DIALECTS += [Dialect(gz=True), Dialect(";", gz=True, quoting="all"), Dialect(end="none"), Dialect(end="blank")]


def world(ids: Sequence[str] = PLAIN, seed: int = 0, many: bool = False) -> dict[str, Table]:
    """Nodes with these ids, and edges between them, each once: numbers, words, dates, lists, labels."""
    rng = random.Random(seed)
    count = len(ids)
    nodes = {
        "id": list(ids),
        "age": [str(rng.randint(20, 80)) for _ in ids],
        "city": [rng.choice(["Oslo", "Rome", "Bonn"]) for _ in ids],
        "label": ["ab"[number % 2] for number in range(count)],
        "score": [str(round(rng.uniform(0, 9), 3)) for _ in ids],
    }
    pairs = [(row, (row + 1) % count) for row in range(count)] + [(row, (row + 2) % count) for row in range(count)]
    edges = {
        "source": [ids[u] for u, _ in pairs],
        "target": [ids[v] for _, v in pairs],
        "amount": [str(round(rng.uniform(1, 500), 2)) for _ in pairs],
        "way": [rng.choice(["card", "cash"]) for _ in pairs],
        "fraud": [str(number % 2) for number in range(len(pairs))],
        "fee": [str(round(rng.uniform(0, 5), 3)) for _ in pairs],
    }
    if not many:
        return {"nodes": nodes, "edges": edges}
    copies = [f"g{number}" for number in range(8)]
    big = {name: values * len(copies) for name, values in nodes.items()}
    big["graph"] = [name for name in copies for _ in ids]
    bonds = {name: values * len(copies) for name, values in edges.items()}
    bonds["graph"] = [name for name in copies for _ in pairs]
    return {
        "nodes": big,
        "edges": bonds,
        "graphs": {"graph": copies, "toxic": [str(number % 2) for number in range(len(copies))]},
    }


def write_all(folder: Path, tables: Mapping[str, Table], dialect: Dialect = COMMA) -> Path:
    """A folder of these tables."""
    for name, table in tables.items():
        dialect.write(folder, name, table)
    return folder
