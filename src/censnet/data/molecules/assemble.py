"""A table with a column of SMILES: one graph for each row that is a molecule."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import torch

from censnet.data.molecules.atom_bond_labels import label_parts
from censnet.data.molecules.atoms import learn_vocabulary
from censnet.data.molecules.atoms_and_bonds import Read, descriptor_names
from censnet.data.molecules.featurize import encode_molecules, kinds_of_bonds, read_smiles, structure_of
from censnet.data.molecules.label_sources import LEVELS, LabelSources
from censnet.data.molecules.match_molecules import MoleculeTable
from censnet.data.tables.assemble import find_table_keys
from censnet.data.tables.columns import as_arrow, as_text
from censnet.data.tables.files import Tables, check_names
from censnet.data.tables.keys import find_keys, names_smiles
from censnet.data.tables.notes import Note
from censnet.data.tables.row_errors import RowErrors
from censnet.data.tables.row_order import invert_rows
from censnet.data.tables.schema import (
    Descriptors,
    Features,
    Hydrogens,
    MoleculeReading,
    Schema,
    Standardize,
    find_graph_columns,
)
from censnet.data.tables.table_graph import Assembled, TrainRows
from censnet.data.tables.typed_table import TypedTable
from censnet.errors import DataError, location, name_columns, quote
from censnet.levels import Level
from censnet.ops.arrays import IntArray
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.option_names import column_option

logger = logging.getLogger(__name__)
FEWEST_DESCRIBED, MOST_DESCRIBED = 200, 2000  # molecules, of which descriptors are tried by default

# remarks on molecules: whether they are also made in prediction, and the sentence
REMARKS = {
    "name": (True, "something stands behind the SMILES, as a name does: it is not read"),
    "extension": (True, "an extension |...| stands behind the SMILES: it is not read"),
    "isotopes": (True, "isotopes are not distinguished: labels such as [2H] and [13C] are not read"),
    "dummies": (False, "dummy atoms (*), as most molecules here have, are atoms of no known element"),
    "standardized": (True, "data.standardize is {standardize}, which changed the molecule"),
    "not standardized": (True, "the form that data.standardize={standardize} gives is no molecule: read as written"),
    "map numbers": (
        True,
        "some atoms have no map number, or that of another: atoms are numbered as rdkit does, from 0",
    ),
    "fragments": (
        False,
        "several fragments, as salts have, are one graph: data.standardize=parent keeps the largest, without charges",
    ),
}


@dataclass(frozen=True, eq=False)
class MoleculeEncoder:
    """Features of atoms and bonds; the vocabulary of the `paper` features comes from training molecules alone.

    Args:
        schema: keys and kinds of columns.
        read: the molecules.
        table: the typed columns of `graphs`.
    """

    schema: Schema
    read: Read
    table: TypedTable

    @cached_property
    def kinds(self) -> IntArray | None:
        """The kind of each bond, where the `paper` features need it."""
        return None if self.schema.features == "rich" else kinds_of_bonds(self.read)

    def fit(self, graph: Graph | GraphSet, rows: TrainRows, message_edges: IntArray | None) -> Schema:
        schema = self.schema.with_tables({"graphs": self.table.fit(rows.get("graphs"))})
        if self.kinds is None:
            return schema
        training = self.kinds
        if "graphs" in rows:
            training = training[np.repeat(np.isin(self.read.rows, rows["graphs"]), self.read.num_bonds)]
        return schema.model_copy(update={"vocabulary": learn_vocabulary(training)})

    def encode(self, graph: Graph | GraphSet, schema: Schema) -> Graph | GraphSet:
        return graph.with_features(*encode_molecules(self.read, self.kinds, schema.vocabulary))


def assemble_molecules(
    tables: Tables,
    keys: Mapping[str, str],
    schema: Schema | None,
    targets: Mapping[str, Sequence[str]],
    features: Features,
    decided: Mapping[str, Mapping[str, str]],
    problems: RowErrors,
    notes: list[Note],
    standardize: Standardize = "none",
    isotopes: bool = False,
    descriptors: Descriptors = False,
    scaffolds: bool = False,
    hydrogens: Hydrogens = "implicit",
    labels: LabelSources | None = None,
) -> Assembled:
    """Molecules from the SMILES of `graphs`, each parsed once.

    `standardize`, `hydrogens` and `descriptors` are for data without a schema, which otherwise says so. `isotopes` is
    true for built-in sets, whose tensors are as published. With `labels` there are tables of atoms and bonds, too.
    """
    frame, file = tables.frames()["graphs"], tables.name("graphs")
    column = keys.get("smiles")
    if column is None:
        there = name_columns(frame.columns)
        raise DataError(f"has the columns {there}, expected smiles, or tables of nodes and edges beside it", file)
    smiles = smiles_of(frame, column)
    if schema is not None:
        standardize, hydrogens = schema.reading.standardize, schema.reading.hydrogens
    if labels is not None and standardize != "none":
        raise DataError(
            f"data.standardize is {standardize}, expected none where atoms or bonds have labels: it changes their order"
        )
    isotopes = isotopes or labels is not None or hydrogens == "explicit"
    if schema is None:
        reading = MoleculeReading(
            standardize=standardize, dummies=_has_dummies(smiles), isotopes=isotopes, hydrogens=hydrogens
        )
        few = FEWEST_DESCRIBED <= len(smiles) <= MOST_DESCRIBED
        names = descriptor_names() if few or descriptors in (True, "compare") else []
        names = names if descriptors else []
    else:
        reading = schema.reading.model_copy(update={"isotopes": isotopes})
        known = [column.name for column in schema.descriptors.columns if column.width]
        names = descriptor_names(known) if known else []
    read = read_smiles(smiles, reading, names, scaffolds, numbers=labels is not None)
    bad = {**read.problems, **tables.unreadable}
    problems.add("graphs", column, bad)
    notes += tables.notes + ([] if schema is not None else _other_smiles(frame, column, file))
    notes += _reading_notes(read.remarks, smiles, reading, location(file, column=column), schema is not None)
    graph = structure_of(read)
    if graph is None:
        first = bad[min(bad)] if bad else "there is no row"
        raise DataError(f"no row is a molecule; the first: {first}", file, column=column)
    if schema is None:
        listed = [] if labels is None else [name for names_of in labels.lists.values() for name in names_of]
        others = frame.drop(columns=listed)
        table = TypedTable.find(others, keys, targets.get("graphs", ()), decided.get("graphs"), file=file)
        schema = Schema(
            many=True,
            tables={Level.GRAPH: table.schema},
            smiles=column,
            features="rich" if features == "rich" else "paper",  # the released code has no molecules
            reading=reading,
            graph_columns=find_graph_columns(table.schema, decided.get("graphs", {})),
        )
    else:
        fitted = schema.graphs.model_copy(update={"keys": dict(keys)})
        schema = schema.with_tables({"graphs": fitted}).model_copy(update={"reading": reading, "smiles": column})
        table = TypedTable.read(schema.of_graphs, frame, file)
    rows = {Level.GRAPH: torch.from_numpy(invert_rows(read.rows, len(frame)))}
    chosen = table.select(schema.graph_columns) if schema.graph_columns else None
    if labels is not None:
        unread = {row: problems.found["graphs"][row] for row in sorted(bad)}
        ids = frame[keys["graph"]] if "graph" in keys else None
        molecules = MoleculeTable(smiles, ids, file, read, hydrogens == "explicit", unread)
        parts = {}
        for level in LEVELS:
            of_run = schema.table(level.table) if schema.table(level.table).keys else None
            parts[level] = label_parts(
                labels, level, molecules, frame, keys.get("graph"), decided.get(level.table, {}), problems, of_run
            )
        rows |= {level: part.rows for level, part in parts.items()}
        schema = schema.with_tables({level.table: part.schema for level, part in parts.items()})
        files = {level.table: part.file for level, part in parts.items()}
        tables = tables.with_frames({level.table: part.frame for level, part in parts.items()}, files)
    encoder = MoleculeEncoder(schema, read, table)
    described = pd.DataFrame(read.descriptors, columns=names) if names else None
    return Assembled(
        graph, tables, schema, rows, encoder, read.rows, chosen, described, read.scaffolds if scaffolds else None
    )


def find_molecule_keys(
    tables: Tables, schema: Schema | None, decided: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    """Role -> column of a table of molecules: by name, or as in training. Later molecules need no names, but SMILES."""
    if schema is None or schema.smiles is None:
        return dict(find_table_keys(tables, schema, decided).get("graphs", {}))
    columns = list(tables.frames()["graphs"].columns)
    check_names(columns, tables.name("graphs"))
    keys = find_keys("graphs", columns, decided.get("graphs", {}))
    keys |= {role: name for role, name in schema.graphs.keys.items() if name in columns}
    if "smiles" not in keys:
        raise DataError("is missing, expected SMILES as in training", tables.name("graphs"), column=schema.smiles)
    return keys


def smiles_of(frame: pd.DataFrame, column: str) -> list[str]:
    """The text of each row, "" where there is none."""
    found: list[str] = pc.fill_null(as_text(as_arrow(frame[column])), "").to_pylist()
    return found


def _has_dummies(smiles: Sequence[str]) -> bool:
    """Whether dummy atoms are what these molecules are made of, as polymers are: at least half of them have some."""
    written = [text.split()[0] for text in smiles if text.strip()]
    return 2 * sum("*" in text for text in written) >= max(len(written), 1)


def _other_smiles(frame: pd.DataFrame, column: str, file: str) -> list[Note]:
    """A note where another column might have been meant."""
    others = [name for name in frame.columns if names_smiles(name) and name != column]
    if not others:
        return []
    named = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
    what = f"molecules are read from column {column}, and not from {named}"
    return [Note("molecule", f"{file}: {what}: {column_option(('NAME', 'smiles'))} chooses")]


def _reading_notes(
    remarks: Mapping[str, Sequence[int]], smiles: Sequence[str], reading: MoleculeReading, where: str, later: bool
) -> list[Note]:
    """Notes on what was not read as it is written: in how many rows, and the first; logged for data that come later."""
    notes = list[Note]()
    if reading.standardize != "none" and "standardized" not in remarks:
        unchanged = f"data.standardize is {reading.standardize}, which changed no molecule"
        notes.append(Note("molecule", where + unchanged))
    for remark, (tell_later, sentence) in REMARKS.items():
        rows = remarks.get(remark, ())
        if not rows or (remark == "isotopes" and reading.isotopes):
            continue
        what = sentence.format(standardize=reading.standardize)
        first = f"the first: row {rows[0] + 1}, {quote(smiles[rows[0]].strip())}"
        notes.append(Note("molecule", f"{where}{len(rows):,} of {len(smiles):,} rows: {what}; {first}"))
        if later and tell_later:
            logger.warning("%s", notes[-1])
    return notes
