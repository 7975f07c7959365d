"""A table with a column of SMILES: one graph for each row that is a molecule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import torch

from censnet.data.errors import DataError
from censnet.data.molecules.featurize import FeatureSet, featurize
from censnet.data.problems import Problems
from censnet.data.tables.assemble import TrainRows, describe_columns
from censnet.data.tables.columns import as_arrow, as_text
from censnet.data.tables.files import Tables
from censnet.data.tables.packing import Assembled, Fitted
from censnet.data.tables.schema import Features, Schema, TableSchema, chosen_columns


def assemble_molecules(
    tables: Tables,
    keys: Mapping[str, str],
    schema: Schema | None,
    targets: Mapping[str, Sequence[str]],
    train_rows: TrainRows,
    described: Features,
    decided: Mapping[str, Mapping[str, str]],
    problems: Problems,
    notes: list[str],
) -> Assembled:
    """Molecules from the SMILES of `graphs`; the vocabulary of the `paper` features comes from training rows alone."""
    frame, file = tables.frames()["graphs"], tables.name("graphs")
    column = keys.get("smiles")
    if column is None:
        known = ", ".join(frame.columns[:20])
        raise DataError(f"has the columns {known}, expected smiles, or tables of nodes and edges beside it", file)
    smiles = smiles_of(frame, column)
    features, vocabulary = _atoms_and_bonds(described), None
    if schema is not None:
        features, vocabulary = _atoms_and_bonds(schema.features), schema.vocabulary
    elif features == "paper" and "graphs" in train_rows:
        vocabulary = featurize([smiles[row] for row in train_rows["graphs"]], features).vocabulary
    molecules = featurize(smiles, features, vocabulary)
    problems.add("graphs", column, molecules.problems)
    if molecules.graphs is None:
        first = molecules.problems[min(molecules.problems)] if molecules.problems else "there is no row"
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
            chosen=chosen_columns(table, decided.get("graphs", {})),
        )
        fitted = Fitted(schema, np.zeros(0, np.int64), molecules.kinds)
    notes += describe_columns(tables, schema)
    none = torch.zeros(0, dtype=torch.long)
    return Assembled(molecules.graphs, tables, schema, none, none, graph_rows, fitted)


def smiles_of(frame: pd.DataFrame, column: str) -> list[str]:
    """The text of each row, "" where there is none."""
    found: list[str] = pc.fill_null(as_text(as_arrow(frame[column])), "").to_pylist()
    return found


def _atoms_and_bonds(features: Features) -> FeatureSet:
    """The released code has no molecules; they are then described as in the paper."""
    return "rich" if features == "rich" else "paper"
