"""What an engine does not compute, said in one line before any work."""

from __future__ import annotations

from collections.abc import Iterator

from censnet.errors import RunError
from censnet.nn.encoder import CensNet
from censnet.nn.heads import GraphHead, LayerHead, RowHead
from censnet.nn.kernels import Lanczos
from censnet.nn.pooling import Readout
from censnet.runs.predictor import Predictor

REMEDY = "leave out the engine, and it is computed in memory"
POOLS = {"mean", "sum"}  # of graphs, which follow from sums and counts


def check_support(run: Predictor, level: str, engine: str) -> None:
    """Raise unless an engine computes what a run predicts for a level."""
    why = next(_lacking(run, level), None)
    if why is not None:
        raise RunError(f"engine {engine} does not compute {why}: {REMEDY}")


def _lacking(run: Predictor, level: str) -> Iterator[str]:
    """What an engine lacks for a run."""
    inputs, model, schema = run.inputs, run.models[0], run.schema
    if schema.smiles is not None:
        yield "molecules, of which `predict` takes a few at a time anyway"
    if level == "link" or run.config.link:
        yield "links"
    if run.config.odd_width or any(target.kind == "oriented" for target in run.config.targets):
        yield "oriented columns"
    if schema.time is not None and schema.edge_form == "twice":
        yield "times of edges that are there twice"
    if inputs.causal or type(model.encoder) is not CensNet:
        yield f"the encoder {type(model.encoder).__name__}"
    if model.ego_hops:
        yield "graphs in which each node is marked (model.ego_marks)"
    for name, wanted in (
        ("diffusion positions (model.position_steps)", inputs.position_steps),
        ("windows in time (model.windows)", inputs.widths),
        ("the order of parallel edges (model.ports)", inputs.ports),
        ("factors of known labels (model.label_factors)", inputs.label_factors),
    ):
        if wanted:
            yield name
    for one in run.models:
        for layer in getattr(one.encoder, "layers", ()):
            if isinstance(getattr(layer, "kernel", None), Lanczos):
                yield "the kernel lanczos, whose steps depend on all rows"
        head = dict(one.heads.items()).get(level)
        if not isinstance(head, RowHead | LayerHead | GraphHead):
            yield f"the head {type(head).__name__}"
        if isinstance(head, GraphHead):
            pools = {readout.pool for readout in head.readouts if isinstance(readout, Readout)}
            yield from (f"pooling by {pool}" for pool in sorted(pools - POOLS))
