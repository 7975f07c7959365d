"""A table with a column of SMILES: one graph for each row that is a molecule."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import torch

from censnet.data.molecules.featurize import FeatureSet, featurize
from censnet.data.tables.assemble import TrainRows, column_notes, find_table_keys
from censnet.data.tables.columns import as_arrow, as_text
from censnet.data.tables.files import Tables, check_names
from censnet.data.tables.keys import find_keys, names_smiles
from censnet.data.tables.packing import Assembled, Fitted
from censnet.data.tables.row_errors import RowErrors
from censnet.data.tables.schema import Features, MoleculeReading, Schema, Standardize, TableSchema, chosen_columns
from censnet.errors import DataError, name_columns, place, quote

logger = logging.getLogger("censnet")

# what is worth saying of molecules: whether whoever predicts is told, too, and the sentence
REMARKS = {
    "name": (True, "something stands behind the SMILES, as a name does: it is not read"),
    "extension": (True, "an extension |...| stands behind the SMILES: it is not read"),
    "isotopes": (True, "isotopes are not told apart: labels such as [2H] and [13C] are not read"),
    "dummies": (False, "dummy atoms (*), as most molecules here have, are atoms of no known element"),
    "standardized": (True, "data.standardize is {standardize}, which changed the molecule"),
    "not standardized": (True, "the form that data.standardize={standardize} gives is no molecule: read as written"),
    "fragments": (
        False,
        "several fragments, as salts have, are one graph: data.standardize=parent keeps the largest, without charges",
    ),
}


def assemble_molecules(
    tables: Tables,
    keys: Mapping[str, str],
    schema: Schema | None,
    targets: Mapping[str, Sequence[str]],
    train_rows: TrainRows,
    described: Features,
    decided: Mapping[str, Mapping[str, str]],
    problems: RowErrors,
    notes: list[str],
    standardize: Standardize = "none",
    isotopes: bool = False,
) -> Assembled:
    """Molecules from the SMILES of `graphs`; the vocabulary of the `paper` features comes from training rows alone.

    `standardize` is for data without a schema, which otherwise says so. `isotopes` is true for built-in sets, whose
    tensors are as published.
    """
    frame, file = tables.frames()["graphs"], tables.name("graphs")
    column = keys.get("smiles")
    if column is None:
        known = name_columns(frame.columns)
        raise DataError(f"has the columns {known}, expected smiles, or tables of nodes and edges beside it", file)
    smiles = smiles_of(frame, column)
    features, vocabulary = _atoms_and_bonds(described), None
    if schema is None:
        reading = MoleculeReading(standardize=standardize, dummies=_has_dummies(smiles), isotopes=isotopes)
    else:
        reading = schema.reading.model_copy(update={"isotopes": isotopes})
        table = schema.graphs.model_copy(update={"keys": dict(keys)})
        schema = schema.model_copy(update={"reading": reading, "smiles": column, "graphs": table})
        features, vocabulary = _atoms_and_bonds(schema.features), schema.vocabulary
    if schema is None and features == "paper" and "graphs" in train_rows:
        training = [smiles[row] for row in train_rows["graphs"]]
        vocabulary = featurize(training, features, reading=reading).vocabulary
    molecules = featurize(smiles, features, vocabulary, reading=reading)
    bad = {**molecules.problems, **tables.unreadable}
    problems.add("graphs", column, bad)
    notes += tables.notes + ([] if schema is not None else _other_smiles(frame, column, file))
    notes += _describe_reading(molecules.remarks, smiles, reading, place(file, column=column), schema is not None)
    if molecules.graphs is None:
        first = bad[min(bad)] if bad else "there is no row"
        raise DataError(f"no row is a molecule; the first: {first}", file, column=column)
    graph_rows = torch.full((len(frame),), -1, dtype=torch.long)
    graph_rows[molecules.rows] = torch.arange(len(molecules.rows))
    fitted = None
    if schema is None:
        rows = train_rows.get("graphs")
        table = TableSchema.fit(frame, rows, keys, targets.get("graphs", ()), decided.get("graphs"), file=file)
        schema = Schema(
            many=True,
            graphs=table,
            smiles=column,
            features=features,
            vocabulary=molecules.vocabulary,
            reading=reading,
            chosen=chosen_columns(table, decided.get("graphs", {})),
        )
        fitted = Fitted(schema, np.zeros(0, np.int64), molecules.kinds)
    notes += column_notes(tables, schema)
    none = torch.zeros(0, dtype=torch.long)
    return Assembled(molecules.graphs, tables, schema, none, none, graph_rows, fitted)


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


def _other_smiles(frame: pd.DataFrame, column: str, file: str) -> list[str]:
    """A note where another column might have been meant."""
    others = [name for name in frame.columns if names_smiles(name) and name != column]
    if not others:
        return []
    named = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
    return [f"{file}: molecules are read from column {column}, and not from {named}: --column NAME=smiles chooses"]


def _describe_reading(
    remarks: Mapping[str, Sequence[int]], smiles: Sequence[str], reading: MoleculeReading, where: str, later: bool
) -> list[str]:
    """What was not read as it is written, in how many rows, and the first; logged for data that come `later`."""
    notes = []
    if reading.standardize != "none" and "standardized" not in remarks:
        notes.append(f"{where}data.standardize is {reading.standardize}, which changed no molecule")
    for remark, (tell_later, sentence) in REMARKS.items():
        rows = remarks.get(remark, ())
        if not rows or (remark == "isotopes" and reading.isotopes):
            continue
        what = sentence.format(standardize=reading.standardize)
        first = f"the first: row {rows[0] + 1}, {quote(smiles[rows[0]].strip())}"
        notes.append(f"{where}{len(rows):,} of {len(smiles):,} rows: {what}; {first}")
        if later and tell_later:
            logger.warning("%s", notes[-1])
    return notes


def _atoms_and_bonds(features: Features) -> FeatureSet:
    """The released code has no molecules; they are then described as in the paper."""
    return "rich" if features == "rich" else "paper"
