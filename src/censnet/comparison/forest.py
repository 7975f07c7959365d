"""A random forest on Morgan counts and rdkit's descriptors of whole molecules."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from censnet.data.molecules.descriptors import describe
from censnet.data.molecules.featurize import map_smiles
from censnet.data.molecules.smiles_to_mol import Parser
from censnet.data.tables.schema import MoleculeReading
from censnet.ops.arrays import Array

TREES, SHARE = 200, 0.1  # trees; share of the features that a split looks at
RADIUS, WIDTH = 2, 2048  # of the Morgan counts
_LARGEST = 1e6  # of a descriptor; some are beyond float32


@lru_cache(maxsize=2)
def molecule_features(smiles: tuple[str, ...], reading: MoleculeReading) -> Array:
    """Morgan counts of radius 2 and all descriptors of each molecule; 0 where there is no molecule, or no value.

    Args:
        smiles: the texts. Their features are kept for the next seed.
        reading: how a text becomes a molecule.

    Shape:
        (molecules, 2048 + descriptors)
    """
    counts = np.concatenate(map_smiles(partial(_morgan_counts, reading=reading), smiles, None))
    described = np.nan_to_num(describe(smiles, reading=reading).to_numpy())
    return np.hstack([counts, np.clip(described, -_LARGEST, _LARGEST)]).astype(np.float32)


def _morgan_counts(texts: Sequence[object], reading: MoleculeReading) -> Array:
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

    parser, generator = Parser(reading), GetMorganGenerator(radius=RADIUS, fpSize=WIDTH)
    found = np.zeros((len(texts), WIDTH), np.float32)
    for row, text in enumerate(texts):
        molecule = parser.molecule_or_none(text)
        if molecule is not None:
            found[row] = generator.GetCountFingerprintAsNumPy(molecule)
    return found


def fit_forest(features: Array, labels: Array, train: Array, num_classes: int, seed: int) -> Array:
    """Fit a forest to training rows, and predict all rows.

    Args:
        features: of all rows.
        labels: numbers, or classes counted from 0; those of training rows are read.
        train: the training rows.
        num_classes: 0 for numbers.
        seed: of the forest.

    Returns:
        (rows,) numbers, (rows,) probabilities of the second of two classes, or (rows, classes) of more.
    """
    kind = RandomForestClassifier if num_classes else RandomForestRegressor
    forest = kind(TREES, max_features=SHARE, random_state=seed, n_jobs=-1).fit(features[train], labels[train])
    if not num_classes:
        return np.asarray(forest.predict(features))
    shares = np.zeros((len(features), num_classes))
    shares[:, forest.classes_.astype(np.int64)] = forest.predict_proba(features)
    return shares[:, 1] if num_classes == 2 else shares
