"""Outputs as predictions in the user's labels and units, batch by batch: what `Predictor.table` does with all rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
import torch

from censnet.engines.columns import Group, read_integers
from censnet.engines.unusual import find_unusual, is_beyond, join_ends, join_reasons, read_unusual
from censnet.nn.chunked import dense
from censnet.nn.heads import Head
from censnet.runs.novelty import LevelNovelty
from censnet.runs.predictor import UNLIKE, check_finite, free_name
from censnet.tasks.predictions import prediction_rows
from censnet.tasks.targets import Target
from censnet.tasks.uncertainty import TargetUncertainty

NUMBER = "number"  # of a node or an edge


@dataclass(frozen=True)
class Decode:
    """Predictions from the outputs of all members, as a function of Arrow batches.

    Args:
        targets: of the level.
        heads: of each member, which clip their outputs.
        uncertainty: of each target.
        coverage: of intervals and sets, if they are wanted.
        novelty: with what training rows are like; None where rows are not compared.
        taken: names that no column may have.
    """

    targets: Sequence[Target]
    heads: Sequence[Head]
    uncertainty: Sequence[TargetUncertainty]
    coverage: float | None
    novelty: LevelNovelty | None
    taken: Collection[str]

    def outputs(self, member: int) -> Group:
        """The columns of the outputs of a member."""
        return Group(f"out{member}", sum(target.width for target in self.targets))

    @property
    def measures(self) -> bool:
        """Whether embeddings are compared with those of training rows."""
        return self.novelty is not None and self.novelty.threshold is not None

    @property
    def names(self) -> list[str]:
        """The names of the columns of the predictions."""
        return list(self._example.columns)

    @property
    def schema(self) -> pa.Schema:
        """Of the table of predictions, whose columns have numbers in the place of names."""
        found = pa.Schema.from_pandas(self._example, preserve_index=False)
        kinds = [pa.string() if not _is_plain(field.type) else field.type for field in found]
        return pa.schema([(NUMBER, pa.int64()), *((f"v{place}", kind) for place, kind in enumerate(kinds))])

    @property
    def _example(self) -> pd.DataFrame:
        zeros = [torch.zeros(1, self.outputs(0).width)] * len(self.heads)
        return self._with_reasons(self._values(zeros), [None])

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        frame = self._values([self.outputs(member).read(batch) for member in range(len(self.heads))])
        check_finite(frame)
        schema = self.schema
        frame = self._with_reasons(frame, self._reasons(batch))
        arrays = [
            pa.Array.from_pandas(frame[name], type=kind.type)
            for name, kind in zip(frame, list(schema)[1:], strict=True)
        ]
        return pa.RecordBatch.from_arrays([batch.column(NUMBER), *arrays], schema=schema)

    def _values(self, outputs: Sequence[torch.Tensor]) -> pd.DataFrame:
        raw = torch.stack(list(outputs))
        clipped = torch.stack([dense(head.clip(rows)) for head, rows in zip(self.heads, outputs, strict=True)])
        clips = any(head.target_range is not None for head in self.heads)
        before = raw if clips else None
        return prediction_rows(self.targets, clipped, self.taken, before, self.uncertainty, self.coverage)

    def _with_reasons(self, values: pd.DataFrame, reasons: Sequence[Any]) -> pd.DataFrame:
        if self.novelty is None:
            return values
        name = free_name(UNLIKE, {*self.taken, *values.columns})
        return values.assign(**{name: pd.Series(list(reasons), dtype=object)})

    def _reasons(self, batch: pa.RecordBatch) -> list[str | None]:
        """Why each row is unlike training rows."""
        if self.novelty is None:
            return []
        far = torch.zeros(batch.num_rows, dtype=torch.float64)
        if self.measures and self.novelty.threshold is not None:
            far = Group("far", 1).read(batch).squeeze(1).double() / self.novelty.threshold
        texts = [name for name in batch.schema.names if pa.types.is_string(batch.schema.field(name).type)]
        some = is_beyond(far).numpy()
        for name in texts:
            some = some | batch.column(name).is_valid().to_numpy(zero_copy_only=False)
        found: list[str | None] = [None] * batch.num_rows
        sizes = self._unusual_sizes(batch)
        rows = sorted({*some.nonzero()[0].tolist(), *sizes})
        for row, values in zip(rows, batch.select(texts).take(pa.array(rows, pa.int64())).to_pylist(), strict=True):
            reasons = list(read_unusual(values.get("unusual")).values())
            if "a_unusual" in values:
                reasons += join_ends([values["a_unusual"], values["b_unusual"]])
            firsts = [values[name] for name in texts if name.startswith(("nodes_u", "edges_u"))]
            found[row] = join_reasons([*firsts, *reasons, *sizes.get(row, [])], float(far[row]))
        return found

    def _unusual_sizes(self, batch: pa.RecordBatch) -> dict[int, list[str]]:
        """Of graphs, the rows whose number of nodes or edges is unusual, and what to say."""
        if self.novelty is None or "nodes" not in batch.schema.names:
            return {}
        sizes = torch.stack([read_integers(batch, side) for side in ("nodes", "edges")], dim=1).float()
        texts = find_unusual(self.novelty.ranges.get("sizes", []), sizes)
        return {row: list(read_unusual(text).values()) for row, text in enumerate(texts) if text is not None}


def _is_plain(kind: pa.DataType) -> bool:
    """Whether a column of this type is stored as it is."""
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind))
