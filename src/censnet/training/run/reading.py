"""The files of a run directory as what they stand for. What they say is checked before it is believed."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from censnet.data.errors import quote
from censnet.data.tables.columns import as_arrow
from censnet.data.tables.integers import MISSING, as_integers
from censnet.training.loop.judge import Scores
from censnet.training.loop.learner import Learner
from censnet.training.run.checkpoint import RunError
from censnet.training.run.directory import CONFIG, RunConfig


def read_learners(config: RunConfig, content: bytes, path: Path) -> list[Learner]:
    """The networks of a run, from model.safetensors. Nothing is made of a size that the file does not have."""
    try:
        tensors: Mapping[str, Tensor] = load(content)
    except (SafetensorError, ValueError, RuntimeError) as error:
        raise RunError(f"{path} cannot be read: {_line(error)}") from None
    model, own = config.settings.model, defaultdict[str, dict[str, Tensor]](dict)
    for name, tensor in tensors.items():
        number, _, rest = name.partition("/")
        own[number][rest] = tensor
    if len(own) != config.members or len(tensors) < config.members * (len(model.layers) + len(model.head)):
        raise RunError(f"{path} has {len(tensors)} tensors of {len(own)} networks, expected those of {config.members}")
    learners = []
    for member in range(config.members):
        mine = own[str(member)]
        try:
            with torch.device("meta"):
                learner = Learner(
                    config.node_width,
                    config.edge_width,
                    config.targets,
                    config.link,
                    model,
                    features=config.node_features,
                    graph_width=config.graph_width,
                )
        except (RuntimeError, TypeError, OverflowError, MemoryError) as error:
            raise RunError(f"{path.with_name(CONFIG)} describes no network: {_line(error)}") from None
        expected = learner.state_dict()
        for name, tensor in expected.items():
            found = mine.get(name)
            if found is None or found.shape != tensor.shape or found.dtype != tensor.dtype:
                what = "is missing" if found is None else f"has shape {tuple(found.shape)} and dtype {found.dtype}"
                raise RunError(f"{path}: {name} {what}, expected {tuple(tensor.shape)} and {tensor.dtype}")
        foreign = next((name for name in mine if name not in expected), None)
        if foreign is not None:
            raise RunError(f"{path} has {quote(foreign, 100)}, expected no such tensor: the network has none")
        learner.load_state_dict({name: tensor.clone() for name, tensor in mine.items()}, assign=True)
        learners.append(learner.requires_grad_().eval())
    return learners


def read_frame(content: bytes, path: Path, ids: Collection[str] = ()) -> pd.DataFrame:
    """A table of a run; the columns of ids are as they were written."""
    if not content.strip():
        return pd.DataFrame()
    try:
        names = pd.read_csv(io.BytesIO(content), nrows=0).columns
        own = [name for name in names if name in ids]
        gaps = {name: list(MISSING) for name in names if name not in ids}
        options: dict[str, Any] = {"keep_default_na": False, "na_values": gaps, "dtype": dict.fromkeys(own, "string")}
        frame: pd.DataFrame = pd.read_csv(io.BytesIO(content), low_memory=False, **options)
        for name in own:
            text = as_arrow(frame[name])
            integers = as_integers(text)
            frame[name] = pd.arrays.ArrowExtensionArray(text if integers is None else integers)
        return frame
    except ValueError as error:
        raise RunError(f"{path} is not a table: {_line(error)}") from None


def read_metrics(content: bytes, path: Path) -> dict[str, Scores]:
    """metrics.json."""
    try:
        return TypeAdapter(dict[str, Scores]).validate_json(content)
    except ValidationError as error:
        raise RunError(f"{path} has no scores: {_line(error)}") from None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
