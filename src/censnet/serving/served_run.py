"""A run as it is served: its models and schema without its paths and training rows, and answers as JSON."""

from __future__ import annotations

import logging
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from censnet.data.dataset import Dataset
from censnet.errors import ArgumentError, DataError, shorten
from censnet.levels import Level
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.runs.directory import config_digest, read_config
from censnet.runs.draw import draw_explanation
from censnet.runs.explain import Explained, PartNames, explanation_table
from censnet.runs.loading import read_models, read_schema, read_uncertainty
from censnet.runs.predictor import Predictor
from censnet.serving.answers import records
from censnet.serving.limits import TOO_LARGE, Limits, RefusedError
from censnet.serving.requests import Data, ExplainRequest, PredictRequest, check_smiles
from censnet.serving.row_tables import make_frame, make_tables

MOST_NOTES, LONGEST_NOTE = 20, 500
PART_COLUMNS = ["kind", "part", "where", "part_row", "change", "gate", "gradients"]
PROLOGUE = re.compile(r"<\?xml.*?\?>\s*|<!DOCTYPE.*?>\s*", re.DOTALL)  # which names other encodings and addresses
LOGGER = logging.getLogger("censnet")


@dataclass(frozen=True, eq=False)
class ServedRun:
    """One run by the name that requests call it.

    Args:
        name: of the run.
        predictor: its models; what would name a path of this machine is left out.
        digest: of its directory, by which a process knows that it serves the same run as the others.
        device: to compute on; the best there is if None.
    """

    name: str
    predictor: Predictor
    digest: str
    device: str | None = None

    @classmethod
    def open(cls, name: str, path: Path, device: str | None = None) -> ServedRun:
        """Read a run directory, as `load_run` does, without its predictions."""
        config = read_config(path)
        schema, models = read_schema(path, config), read_models(path, config)
        uncertainty = read_uncertainty(path, config)
        config = config.model_copy(update={"data": name})
        return cls(name, Predictor(config, schema, models, uncertainty=uncertainty), config_digest(path), device)

    def predict(self, request: PredictRequest, limits: Limits) -> dict[str, Any]:
        """Level -> predictions for each row."""
        with _notes() as notes:
            dataset = self._read(request, limits, request.strict)
            found = self._tables(dataset, request, limits)
        said = [] if request.smiles is not None else notes
        return {
            "run": self.name,
            "predictions": {level: records(frame) for level, frame in found.items()},
            "notes": said,
        }

    def predict_together(self, requests: Sequence[PredictRequest], limits: Limits) -> list[dict[str, Any] | None]:
        """The answers of requests of equal `companions`, in one pass; None for those with a row that has an error.

        Errors name rows of the request, so that such a request is to be predicted by itself.
        """
        if self.predictor.levels != ["graph"]:  # of atoms and bonds, rows do not follow from those of the SMILES
            return [None] * len(requests)
        texts = [text for request in requests for text in request.smiles or ()]
        with _notes():
            together = requests[0].model_copy(update={"smiles": texts})
            found = self._tables(self._read(together, limits), together, limits)
        answers, start = list[dict[str, Any] | None](), 0
        (frame,) = found.values()
        for request in requests:
            mine = frame.iloc[start : start + len(request.smiles or ())]
            start += len(mine)
            if "error" in mine and bool(mine["error"].notna().any()):
                answers.append(None)
                continue
            mine = mine.drop(columns=["error"], errors="ignore")
            answers.append({"run": self.name, "predictions": {"graph": records(mine)}, "notes": []})
        return answers

    def explain(self, request: ExplainRequest, limits: Limits) -> dict[str, Any]:
        """Each explained row with its parts, its fidelity and its drawing."""
        rows = request.rows
        if rows is None and request.top is None:
            raise ArgumentError("rows and top are both missing, expected one of them")
        with _notes():
            dataset = self._read(request, limits)
            found = self.predictor.explain(
                dataset, rows, top=request.top, by=request.by, target=request.target, level=request.level
            ).explained
        if len(found) > limits.explained:
            raise RefusedError(TOO_LARGE, f"{len(found):,} rows have these ids, expected at most {limits.explained}")
        names = PartNames(dataset, self.predictor.inputs)
        return {"run": self.name, "explanations": [_explanation(one, names, request) for one in found]}

    def _read(self, request: Data, limits: Limits, strict: bool = False) -> Dataset:
        """The data of a request, within the limits."""
        schema = self.predictor.schema
        if request.smiles is not None:
            if schema.smiles is None:
                raise DataError(f"smiles are given, expected tables: the run {self.name} was not trained on SMILES")
            data: object = list(request.smiles)
        else:
            tables = make_tables(request.tables, schema, limits)
            if tables.graphs is not None and schema.smiles in tables.graphs:
                check_smiles(tables.graphs[schema.smiles].tolist(), limits)
            data = tables
        dataset = self.predictor.read(data, strict=strict)
        check_size(dataset.graph, limits)
        return dataset

    def _tables(self, dataset: Dataset, request: PredictRequest, limits: Limits) -> dict[str, pd.DataFrame]:
        run = self.predictor
        pairs = None
        if request.pairs is not None:
            pairs = make_frame([pair.model_dump() for pair in request.pairs], "pairs", limits)
        links = request.pairs is not None or request.top is not None
        if request.level is not None:
            levels = [run.level_of(request.level) or request.level]
        else:
            levels = ["link"] if links else [str(level) for level in Level if level in run.levels]
        return {
            level: run.predict(
                dataset, level, keep=request.keep, pairs=pairs, top=request.top, device=self.device,
                known_labels=request.known_labels, coverage=request.coverage,
            )
            for level in levels
        }  # fmt: skip


def check_size(graph: Graph | GraphSet, limits: Limits) -> None:
    """Raise for a graph, or graphs, larger than one request may have."""
    size = graph.num_nodes + graph.num_edges
    if size > limits.size:
        found = f"{graph.num_nodes:,} nodes and {graph.num_edges:,} edges"
        raise RefusedError(
            TOO_LARGE, f"the request has {found}, expected at most {limits.size:,} together: send fewer rows"
        )


def _explanation(one: Explained, names: PartNames, request: ExplainRequest) -> dict[str, Any]:
    frame = explanation_table([one], names)
    largest = frame.groupby("kind", sort=False).head(request.parts)[PART_COLUMNS]
    fidelity = {
        kind: {"change": found.change, "random": found.random, "beats": found.beats}
        for kind, found in one.fidelity.items()
    }
    found: dict[str, Any] = {"row": one.row + 1, "id": one.name, "target": one.target}
    found |= {"class": one.chosen} if one.chosen else {}
    found |= {"answer": float(one.answer), "parts": records(largest), "fidelity": _finite(fidelity)}
    if request.drawing:
        with tempfile.TemporaryDirectory(prefix="censnet-") as folder:
            (path,) = draw_explanation(one, names, Path(folder) / "row", [".svg"])
            found["drawing"] = PROLOGUE.sub("", path.read_text(encoding="utf-8"))
    return found


def _finite(value: Any) -> Any:
    """The same with null for what is no finite number."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    return float(value) if np.isfinite(value) else None


@contextmanager
def _notes() -> Iterator[list[str]]:
    """What the library logs meanwhile, each sentence once, and not too many."""
    found = list[str]()

    class _Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = shorten(record.getMessage(), LONGEST_NOTE)
            if text not in found and len(found) < MOST_NOTES:
                found.append(text)

    collector, before, propagate = _Collector(logging.INFO), LOGGER.level, LOGGER.propagate
    LOGGER.addHandler(collector)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    try:
        yield found
    finally:
        LOGGER.removeHandler(collector)
        LOGGER.setLevel(before)
        LOGGER.propagate = propagate
