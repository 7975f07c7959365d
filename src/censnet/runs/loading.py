"""Load the files of a run directory: models, schema, tables and metrics, each checked before it is used."""

from __future__ import annotations

import csv
import io
import json
import math
import os
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

from censnet.data.splits.links import NODE_ROWS
from censnet.data.tables.columns import MISSING, as_arrow
from censnet.data.tables.csv_files import as_integers
from censnet.data.tables.schema import Schema
from censnet.errors import RunError, quote
from censnet.files import open_regular
from censnet.nn.model import Model
from censnet.runs.config import RunConfig
from censnet.runs.directory import CALIBRATION, CONFIG, HISTORY, METRICS, MODEL, SCHEMA, SPLITS, file_path, read_file
from censnet.runs.uncertainty import Uncertainty
from censnet.settings.build import build_model
from censnet.training.evaluator import Scores

MOST = {SCHEMA: 2**28, METRICS: 2**26, CALIBRATION: 2**28}  # bytes
LONGEST_NAME = 1024  # bytes of the name of a column, in the mean
_EXACT = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)  # whether numbers are read to the last digit unasked
PRECISION = {} if _EXACT else {"float_precision": "round_trip"}
IDS = 64  # columns of a table that are not predictions: ids, parts of a split, an error
KINDS = {  # of tensors in a safetensors file
    torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
    torch.int32: "I32", torch.bool: "BOOL",
}  # fmt: skip


def read_models(path: Path, config: RunConfig) -> list[Model]:
    """The models of a run. No memory is taken for more than the file has and `config.json` describes.

    The header of `model.safetensors` is compared with the model that `config.json` describes, name by name and shape
    by shape, before any tensor is read.
    """
    expected = _describe_model(config, path).state_dict()
    place = path / MODEL
    _check_header(config, expected, path)
    try:
        tensors: Mapping[str, Tensor] = load(read_file(path, config, MODEL))
    except (SafetensorError, ValueError, RuntimeError) as error:
        if isinstance(error, RunError):
            raise
        raise RunError(f"{place} cannot be read: {_line(error)}") from None
    own = defaultdict[str, dict[str, Tensor]](dict)
    for name, tensor in tensors.items():
        _check_values(place, name, tensor)
        number, _, rest = name.partition("/")
        own[number][rest] = tensor
    models = []
    for member in range(config.members):
        model = _describe_model(config, path)
        model.load_state_dict({name: tensor.clone() for name, tensor in own[str(member)].items()}, assign=True)
        models.append(model.requires_grad_().eval())
    return models


def _describe_model(config: RunConfig, path: Path) -> Model:
    """A model of a run, without memory for its tensors."""
    try:
        with torch.device("meta"):
            return build_model(config.shape, config.settings.model)
    except (RuntimeError, TypeError, ValueError, OverflowError, MemoryError) as error:
        raise RunError(f"{path / CONFIG} describes no model: {_line(error)}") from None


def _check_header(config: RunConfig, expected: Mapping[str, Tensor], path: Path) -> None:
    """Raise unless the header of the weights is that of the models described, and the file as long as it says."""
    place = path / MODEL
    longest = config.members * sum(len(json.dumps(name)) + 200 + 20 * tensor.dim() for name, tensor in expected.items())
    data = config.members * sum(tensor.numel() * tensor.element_size() for tensor in expected.values())
    with open_regular(file_path(path, MODEL)) as file:
        size, length = os.fstat(file.fileno()).st_size, int.from_bytes(file.read(8), "little")
        if length > min(longest + 1000, size - 8):
            raise RunError(f"{place} cannot be read: its header is said to have {length:,} bytes, which is too much")
        text = file.read(length)
    try:
        header = json.loads(text)
        found = {
            str(name): (str(each["dtype"]), [int(n) for n in each["shape"]])
            for name, each in header.items()
            if name != "__metadata__"
        }
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise RunError(f"{place} cannot be read: its header is no table of tensors: {_line(error)}") from None
    for member in range(config.members):
        for name, tensor in expected.items():
            stated = found.pop(f"{member}/{name}", None)
            if stated != (KINDS[tensor.dtype], list(tensor.shape)):
                what = "is missing" if stated is None else f"has shape {tuple(stated[1])} and dtype {quote(stated[0])}"
                raise RunError(
                    f"{place}: {name} {what[:200]}, expected {tuple(tensor.shape)} and {KINDS[tensor.dtype]}"
                )
    if found:
        raise RunError(f"{place} has {quote(next(iter(found)), 100)}, expected no such tensor: the model has none")
    if size != 8 + length + data:
        raise RunError(f"{place} has {size:,} bytes, expected {8 + length + data:,}, as its header says")


def _check_values(place: Path, name: str, tensor: Tensor) -> None:
    """Raise unless the numbers of a tensor are finite, and positive where something is divided by them."""
    if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
        bad = tensor[~tensor.isfinite()]
        raise RunError(
            f"{place}: {name} has {len(bad):,} of {tensor.numel():,} values that are not finite, such as "
            f"{float(bad[0])}, expected numbers: train again, or restore the file"
        )
    tiny = torch.finfo(torch.float32).tiny
    least = {"running_var": 0.0, "reference_size": tiny, "unit": tiny}.get(name.rpartition(".")[2])
    if least is not None and bool((tensor < least).any()):
        expected = "0 or more" if least == 0 else "more than 0"
        raise RunError(f"{place}: {name} has the value {float(tensor.min())}, expected {expected}, as it is a scale")


def read_schema(path: Path, config: RunConfig) -> Schema:
    """schema.json, whose statistics can be used, and which gives the features that the models read."""
    file = str(path / SCHEMA)
    schema = Schema.from_json(_read_bounded(path, config, SCHEMA), file)
    tables = {level.table: fitted for level, fitted in schema.tables.items()} | {"descriptors": schema.descriptors}
    for table, columns in tables.items():
        for column in [*columns.columns, *([] if columns.degree is None else [columns.degree])]:
            where = f"{file}, {table}, column {quote(column.name)}"
            bad = next((scale for scale in column.scale if not scale > 0 or not math.isfinite(scale)), None)
            if bad is not None:
                raise RunError(f"{where}: scale is {bad}, expected more than 0: values are divided by it")
            if not all(map(math.isfinite, column.mean)):
                raise RunError(f"{where}: mean has a value that is not finite, expected numbers")
            if column.kind != "category" and len(column.scale) != len(column.mean):
                raise RunError(
                    f"{where}: {len(column.scale)} scales and {len(column.mean)} means, expected as many of each"
                )
    for level, tensors in (("nodes", config.node_width), ("edges", config.edge_width)):
        width = schema.table(level).width
        if schema.smiles is None and schema.features == "rich" and width != tensors:
            raise RunError(f"{file} gives {width} features of {level}, expected {tensors}, as {CONFIG} says")
    if schema.edges.odd_width not in (0 if schema.edges.columns else config.odd_width, config.odd_width):
        found = f"{schema.edges.odd_width} oriented features of edges"
        raise RunError(f"{file} gives {found}, expected {config.odd_width}, as {CONFIG} says")
    return schema


def _read_bounded(path: Path, config: RunConfig, name: str) -> bytes:
    with open_regular(file_path(path, name)) as file:
        size = os.fstat(file.fileno()).st_size
    if size > MOST[name]:
        raise RunError(f"{path / name} has {size:,} bytes, expected at most {MOST[name]:,}")
    return read_file(path, config, name)


def read_frame(content: bytes, path: Path, ids: Collection[str] | None = ()) -> pd.DataFrame:
    """A table of a run; the columns of ids, or all but numbers of rows if None, are text as it was written."""
    if not content.strip():
        return pd.DataFrame()
    try:
        names = pd.read_csv(io.BytesIO(content), nrows=0).columns
        if ids is None:
            dtypes = dict.fromkeys(names, "string") | {"row": "int64"}
            if set(NODE_ROWS) <= set(names):
                dtypes |= dict.fromkeys(NODE_ROWS, "Int64")
            return pd.read_csv(io.BytesIO(content), dtype=dtypes, keep_default_na=False, na_values=[""])
        own = [name for name in names if name in ids]
        gaps = {name: list(MISSING) for name in names if name not in ids}
        options: dict[str, Any] = {"keep_default_na": False, "na_values": gaps, "dtype": dict.fromkeys(own, "string")}
        options |= PRECISION
        frame: pd.DataFrame = pd.read_csv(io.BytesIO(content), low_memory=False, **options)
        for name in own:
            text = as_arrow(frame[name])
            integers = as_integers(text)
            frame[name] = pd.arrays.ArrowExtensionArray(text if integers is None else integers)
        return frame
    except ValueError as error:
        raise RunError(f"{path} is not a table: {_line(error)}") from None


def read_table_file(path: Path, config: RunConfig, name: str, ids: Collection[str] = ()) -> pd.DataFrame:
    """A table of a run; it has no more columns, and a history no more rows, than settings explain.

    The columns of ids, and all of splits.csv but numbers of rows, are as they were written.
    """
    most = IDS + 4 * sum(max(len(target.classes), 1) + 4 for target in config.targets)
    expected = {HISTORY: {"epoch", "loss", "learning_rate"}, SPLITS: {"table", "row", "split"}}.get(name, set())

    def check(path: Path, part: bytes, content: bytearray) -> None:
        if b"\0" in part and (name == HISTORY or not part.strip(b"\0")):  # an id may have one, but nothing else
            raise RunError(f"{path} is not a table: it has a byte of value 0")
        head = content.find(b"\n")
        if head > most * LONGEST_NAME or (head < 0 and len(content) > most * LONGEST_NAME):
            raise RunError(
                f"{path} has a first line of more than {most * LONGEST_NAME:,} bytes, expected names of columns"
            )
        if head >= 0 and len(part) == len(content):  # the first piece that has it; a later one would only repeat it
            _check_names(path, bytes(content[:head]), most, expected)

    content = read_file(path, config, name, check)
    _check_names(path / name, content.partition(b"\n")[0], most, expected)
    rows = config.members * config.settings.training.epochs
    lines = content.count(b"\n")
    if name == HISTORY and lines > rows + 1:
        raise RunError(f"{path / name} has {lines - 1:,} rows, expected at most {rows:,}: one an epoch")
    frame = read_frame(content, path / name, {HISTORY: (), SPLITS: None}.get(name, ids))
    if name == HISTORY:
        _check_history(path / name, frame)
    return frame


def _check_history(path: Path, frame: pd.DataFrame) -> None:
    if not len(frame):
        raise RunError(f"{path} has no epoch, expected one or more")
    if not all(pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes):
        raise RunError(f"{path} has values that are no numbers, expected numbers alone")
    counted = frame[[name for name in ("member", "epoch") if name in frame]]
    if not bool(((counted >= 0) & (counted < 2**53)).all(axis=None)):
        raise RunError(f"{path} has an epoch or a member that is no number from 0, expected one in every row")


def _check_names(path: Path, line: bytes, most: int, expected: set[str]) -> None:
    """Raise unless the first line of a table names columns that are expected there, and not too many."""
    try:
        names = next(csv.reader([line.decode().rstrip("\r")]), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise RunError(f"{path} is not a table: {_line(error)}") from None
    if len(names) > most:
        raise RunError(f"{path} has {len(names):,} columns, expected at most {most:,}")
    missing = expected - set(names)
    if names and missing:
        raise RunError(f"{path} has no column {min(missing)}, expected {', '.join(sorted(expected))}")


def read_metrics(path: Path, config: RunConfig) -> dict[str, Scores]:
    """metrics.json."""
    content = _read_bounded(path, config, METRICS)
    try:
        return TypeAdapter(dict[str, Scores]).validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))[:100]
        raise RunError(f"{path / METRICS} has no scores: {where or 'all of it'}: {first['msg'][:200]}") from None


def read_uncertainty(path: Path, config: RunConfig) -> Uncertainty:
    """calibration.json, which runs of an earlier version do not have; it has an entry for each target."""
    if CALIBRATION not in config.files:
        return Uncertainty()
    try:
        found = Uncertainty.model_validate_json(_read_bounded(path, config, CALIBRATION))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))[:100]
        raise RunError(
            f"{path / CALIBRATION} has no calibration: {where or 'all of it'}: {first['msg'][:200]}"
        ) from None
    for level, each in found.levels.items():
        targets = [target for target in config.targets if target.level == level]
        if len(targets) != len(each):
            raise RunError(f"{path / CALIBRATION} has {len(each)} targets of {level}, expected {len(targets)}")
        for target, own in zip(targets, each, strict=True):
            lists = 0 if own.conformal is None else len(own.conformal.scores)
            if lists not in (0, 2 if target.kind == "binary" else 1) or (lists and target.is_wide):
                raise RunError(f"{path / CALIBRATION} has scores that are not those of {target.name}, a {target.kind}")
    return found


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
