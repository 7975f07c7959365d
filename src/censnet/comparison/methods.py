"""The methods of a comparison, each trained on prepared data and scored by the metrics of the training."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from accelerate import Accelerator

from censnet.comparison.ablations import without_edge_features, without_edge_stream
from censnet.comparison.classical import boost_neighborhoods, boost_own_columns, fit_molecule_forest
from censnet.comparison.records import Record
from censnet.comparison.skipped import Skipped
from censnet.pipeline.fit_run import fit_run
from censnet.pipeline.prepare import Prepared
from censnet.training.callbacks import Callback
from censnet.training.evaluator import Scores


@dataclass(frozen=True)
class Method:
    """One line of the table.

    Args:
        key: its name in files.
        name: for the user.
        change: what it changes of the training; None where it is not a training of ours.
        fit: seed -> part -> scores; None where it is a training of ours.
        for_molecules: whether it is for molecules alone, and not mentioned with other data.
    """

    key: str
    name: str
    change: Callable[[Prepared], Prepared] | None = None
    fit: Callable[[Prepared, int], dict[str, Scores]] | None = None
    for_molecules: bool = False


OURS, NO_STREAM, NO_FEATURES = "censnet", "censnet-no-edge-stream", "censnet-no-edge-features"
METHODS = (
    Method("trees-own", "trees on own columns", fit=boost_own_columns),
    Method("trees-neighbors", "trees on neighbors", fit=boost_neighborhoods),
    Method("forest", "forest on fingerprints", fit=fit_molecule_forest, for_molecules=True),
    Method(OURS, "CensNet", lambda prepared: prepared),
    Method(NO_STREAM, "CensNet, no edge layers", without_edge_stream),
    Method(NO_FEATURES, "CensNet, no edge columns", without_edge_features),
)
NAMES = {method.key: method.name for method in METHODS}
OTHERS = tuple(method.key for method in METHODS if method.fit is not None)


def run_method(
    method: Method, prepared: Prepared, seed: int, accelerator: Accelerator, callbacks: Sequence[Callback] = ()
) -> Record:
    """Train a method, and record its scores on validation and test rows, or why it cannot be trained here."""
    started = time.monotonic()
    try:
        if method.fit is not None:
            scores = method.fit(prepared, seed)
        else:
            assert method.change is not None
            run = fit_run(method.change(prepared), 1, accelerator, started, callbacks=callbacks)
            scores = {part: run.metrics[part] for part in ("validation", "test") if part in run.metrics}
    except Skipped as why:
        return Record(method=method.key, seed=seed, seconds=0.0, skipped=str(why))
    return Record(method=method.key, seed=seed, seconds=round(time.monotonic() - started, 2), scores=scores)
