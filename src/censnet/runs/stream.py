"""A run that is fed event by event: each gets its answer at once, from running sums, with the numbers of `predict`."""

from __future__ import annotations

import logging
import os
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from torch import nn

from censnet.errors import CensNetError, DataError, RunError, quote
from censnet.nn.causal_encoder import CausalEncoder
from censnet.nn.causal_stream import CausalStream
from censnet.nn.dropout import Dropout
from censnet.nn.growing_rows import GrowingRows
from censnet.nn.heads import RowHead
from censnet.nn.model import Model
from censnet.nn.stream_arrays import from_arrays, to_arrays
from censnet.ops.arrays import Array
from censnet.option_names import name_option
from censnet.runs.predictor import UNLIKE, Predictor, free_name
from censnet.runs.row_novelty import RowNovelty
from censnet.runs.stream_directory import StreamRecord, read_state, run_digest, write_state
from censnet.runs.stream_lines import LABEL_OF, NODE, NUMBER, LineReader, Numbers, is_node_line, read_number
from censnet.runs.uncertainty import check_coverage
from censnet.tasks.row_answers import RowAnswers
from censnet.text import count

logger = logging.getLogger(__name__)
ANSWERS = 1024  # the latest answers, which are given again to events that are fed again
Answer = dict[str, Any]


class StreamMember:
    """One model of a run, event by event.

    Args:
        model: causal, with a head for edges.
    """

    def __init__(self, model: Model) -> None:
        head = model.heads["edge"]
        if not isinstance(model.encoder, CausalEncoder) or not isinstance(head, RowHead) or head.reads_nodes:
            raise RunError("the model has no causal layers and a head that reads these, expected both")
        self.stream, self._parts = CausalStream(model.encoder), list[tuple[Array, Array] | None]()
        for part in head.mlp:
            if isinstance(part, nn.Linear):
                weight, bias = (each.detach().cpu().numpy() for each in (part.weight, part.bias))
                self._parts.append((np.ascontiguousarray(weight.T), bias))
            elif isinstance(part, nn.ReLU):
                self._parts.append(None)
            elif not isinstance(part, Dropout):
                raise RunError(f"the head has a {type(part).__name__}, expected linear layers with ReLU between them")

    def outputs(self, embedded: Array) -> Array:
        """The outputs of the head for an embedding. (width,)"""
        x = embedded
        for part in self._parts:
            x = np.maximum(x, 0) if part is None else x @ part[0] + part[1]
        return x


@dataclass
class Position:
    """The position of a stream.

    Args:
        event: the highest number of an event; 0 before the first.
        events: how many were counted.
        now: the time of the last event, as a number.
        lines: how many lines were fed since it was opened.
    """

    event: int = 0
    events: int = 0
    now: float = -np.inf
    lines: int = 0


class Stream:
    """Feed a causal run with events, and get the answer to each: `Run.open_stream` makes one.

    An event sees all events of earlier times, and the labels that arrived before it. Events come in the order of time;
    those of one time do not see each other. One that is earlier than the last is refused, and changes nothing. Events
    have rising numbers, their own or the next one; one whose number was counted gets its answer again, and is not
    counted twice. Whatever is refused leaves the state as it was.

    Args:
        run: causal, of edges.
        number: the field with the number of an event.
        coverage: of intervals and sets, if they are wanted.

    Example:
        >>> run = censnet.load_run("runs/fraud")  # doctest: +SKIP
        >>> stream = run.open_stream()  # doctest: +SKIP
        >>> stream.event({"source": "ann", "target": "bob", "paid": "2024-03-01T10:00", "eur": 5})  # doctest: +SKIP
        {'event': 1, 'fraud_predicted': 'no', 'fraud_p_no': 0.93, 'fraud_p_yes': 0.07, 'unlike_training': None}
        >>> stream.label(1, {"fraud": "no"})  # doctest: +SKIP
        {'label_of': 1}
    """

    def __init__(self, run: Predictor, number: str = NUMBER, coverage: float | None = None) -> None:
        check_run(run)
        targets = run.targets["edge"]
        if coverage is not None:
            check_coverage(coverage, run.uncertainty, "edge", targets)
        self.run, self.known = run, run.inputs.known if run.config.shows_labels else ()
        self.reader = LineReader(run.schema, self.known, number)
        self.members = [StreamMember(model) for model in run.models]
        edges = run.schema.edges
        taken = {*edges.keys.values(), *edges.targets, *(c.name for c in edges.columns), "error", "split", number}
        head = cast(RowHead, run.models[0].heads["edge"])
        sure = run.uncertainty.of("edge", targets)
        self._answers = RowAnswers(targets, sure, taken, coverage, head.target_range is not None)
        novelty = run.uncertainty.novelty.get("edge")  # type: ignore[call-overload]
        self._novelty = None if novelty is None else RowNovelty(novelty)
        self._taken, self._unlike = taken, ""
        self.nodes = dict[str, int]()
        self.features = GrowingRows(run.config.node_width) if run.config.node_features else None
        self._no_features = np.zeros(run.config.node_width, np.float32)
        self._unknown = self.reader.unknown_node().astype(np.float64) if run.config.node_features else self._no_features
        self.counted, self.recent = Numbers(), OrderedDict[int, Answer]()
        self.position, self.path, self.history = Position(), cast(Path | None, None), ""
        self._record = cast(StreamRecord | None, None)

    def __repr__(self) -> str:
        return f"Stream({count(self.position.events, 'event')}, {count(len(self.nodes), 'node')})"

    # -- what is fed --------------------------------------------------------------------------------------------------

    def feed(self, line: object) -> Answer:
        """Answer a line: an event, `{"label_of": 17, ...}` or `{"node": {...}}`. What is refused has an `error`."""
        self.position.lines += 1
        try:
            if not isinstance(line, Mapping):
                raise DataError(f"the line is {quote(line)}, expected an object, {{...}}")
            if LABEL_OF in line:
                return self.label(line[LABEL_OF], line, self.reader.time(line))
            return self.node(line[NODE]) if is_node_line(line) else self.event(line)
        except CensNetError as error:
            return self.refuse(str(error), line)

    def refuse(self, why: str, line: object = None) -> Answer:
        """The answer to a line that cannot be used, with the number in it."""
        found: Answer = {}
        for name in (self.reader.number, LABEL_OF):
            value = line.get(name) if isinstance(line, Mapping) else None
            if type(value) is int:
                found[name] = value
        return {**found, "error": why}

    def event(self, row: Mapping[str, object]) -> Answer:
        """Answer an event, and count it.

        Args:
            row: column -> value, as in the table of edges: both ids, the time, the features and, if it is known
                already, the label. A column that is not known is None. It may have a number, in the field `event`.
        """
        name, position = self.reader.number, self.position
        if row.get(name) is not None:
            number = read_number(row[name], name)
            if self.counted.ranges and number <= self.counted.last:
                return self._again(number)
        event = self.reader.event(row)
        if event.time < position.now:
            show = self.reader.column.show
            raise DataError(
                f"{show(event.time)} is before {show(position.now)}, the time of the last event: it comes late, and is "
                "not counted",
                column=self.reader.column.name,
            )
        number = self.counted.last + 1 if event.number is None else event.number
        found = {name: number, **self._count(number, event.source, event.target, event.time, event.features)}
        self.recent[number] = found
        if len(self.recent) > ANSWERS:
            self.recent.popitem(last=False)
        if event.label is not None:
            for member in self.members:
                member.stream.set_label(number, event.label)
        return found

    def label(self, event: object, labels: Mapping[str, object], time: float | None = None) -> Answer:
        """Tell the label of an event, of which later events then know.

        Args:
            event: its number.
            labels: target -> label.
            time: when it became known, as a number; now if None. It counts as known to events after that time, after
                the last event, and after the label delay of the run.
        """
        number = read_number(event, LABEL_OF)
        if not self.known:
            raise RunError("the model reads no labels, expected none")
        stream = self.members[0].stream
        channels = self.reader.labels.check(labels)
        if number not in stream.state.unlabeled:
            if number not in self.counted:
                raise DataError(f"{LABEL_OF} is {number}, expected the number of an event that was counted")
            return {LABEL_OF: number, "again": True}
        sent = stream.state.unlabeled[number].time + stream.encoder.label_delay
        arrival = max(sent, self.position.now, -np.inf if time is None else time)
        for member in self.members:
            member.stream.set_label(number, channels, arrival)
        return {LABEL_OF: number}

    def node(self, row: Mapping[str, object]) -> Answer:
        """Describe a node, a new one or one whose columns have changed, to the events from now on."""
        name, features = self.reader.node(row)
        if self.features is not None:
            self.features[self._find(name)][:] = features
        return {NODE: name}

    def save(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the state to a directory: completely, or it stays as it was. It is that of `open_stream` if None."""
        folder = self.path if path is None else Path(path)
        if folder is None:
            raise RunError("the stream has no directory, expected a path to save its state to")
        self._record = write_state(folder, self._describe(), self._arrays())
        self.path = folder
        return folder

    def reserve_save(self) -> int:
        """The number of a state that `save_as` may write, in a child of this process; later ones have higher ones."""
        if self._record is None:
            self._record = self._describe().model_copy(update={"answers": []})
        self._record = self._record.model_copy(update={"saved": self._record.saved + 1})
        return self._record.saved

    def save_as(self, number: int) -> None:
        """Write the state to the directory of `open_stream`, under a number that was reserved."""
        assert self.path is not None
        write_state(self.path, self._describe().model_copy(update={"saved": number - 1}), self._arrays())

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on from a state that `save` wrote, of this run."""
        folder = Path(path)
        record, arrays = read_state(folder, self.run)
        if record.number != self.reader.number:
            raise RunError(f"{folder} has events with numbers in {record.number}, expected {self.reader.number}")
        try:
            self._restore(record, arrays)
        except ValueError as error:
            raise RunError(f"{folder} holds no state of this run: {error}") from None
        self._record, self.path = record, folder

    # -- inside -------------------------------------------------------------------------------------------------------

    def _again(self, number: int) -> Answer:
        """The answer to an event whose number is not above that of the last one."""
        if number not in self.counted:
            raise DataError(
                f"{self.reader.number} is {number}, expected more than {self.counted.last}, that of the last event: "
                "numbers rise, and it is not counted"
            )
        return {**self.recent.get(number, {self.reader.number: number}), "again": True}

    def _count(self, number: int, source: str, target: str, time: float, features: Array) -> Answer:
        """Answer an event that can be used, and count it."""
        nodes = self._find(source), self._find(target)
        start, end = (self._no_features if self.features is None else self.features[node] for node in nodes)
        embedded = [member.stream.step(*nodes, time, start, end, features, number) for member in self.members]
        self.counted.add(number)
        self.position.event, self.position.now = number, time
        self.position.events += 1
        outputs = [member.outputs(each) for member, each in zip(self.members, embedded, strict=True)]
        found = self._answers(np.stack(outputs))
        if self._novelty is not None:
            self._unlike = self._unlike or free_name(UNLIKE, {*self._taken, *found})
            ends = start.astype(np.float32), end.astype(np.float32)
            found[self._unlike] = self._novelty.describe(features, ends[0], ends[1], embedded[0])
        return found

    def _describe(self) -> StreamRecord:
        """The record of the state, with that of the last time it was saved."""
        position = self.position
        return StreamRecord(
            run=run_digest(self.run) if self._record is None else self._record.run,
            number=self.reader.number,
            counted=[(first, last) for first, last in self.counted.ranges],
            events=position.events,
            history=self.history,
            answers=list(self.recent.items()),
            saved=0 if self._record is None else self._record.saved,
        )

    def _arrays(self) -> dict[str, Array]:
        names = [name.encode("utf-8", "surrogatepass") for name in self.nodes]
        found: dict[str, Array] = {
            "ids": np.frombuffer(b"".join(names), np.uint8),
            "ids.lengths": np.array([len(name) for name in names], np.int64),
        }
        if self.features is not None:
            found["features"] = self.features.stacked(len(names))
        for number, member in enumerate(self.members):
            found |= {f"{number}/{name}": values for name, values in to_arrays(member.stream.state).items()}
        return found

    def _restore(self, record: StreamRecord, arrays: Mapping[str, Array]) -> None:
        """Take over a state; a `ValueError` says what does not fit."""
        own = {name: values for name, values in arrays.items() if "/" not in name}
        names = _split_names(own.pop("ids", None), own.pop("ids.lengths", None))
        features = own.pop("features", None)
        if own or (features is None) != (self.features is None):
            raise ValueError("there are arrays of another run")
        if features is not None:
            if features.shape != (len(names), self.run.config.node_width) or not np.isfinite(features).all():
                raise ValueError(f"features have shape {features.shape}, expected finite ones of {len(names)} nodes")
            self.features = GrowingRows(features.shape[1])
            self.features.fill(features)
        ranges = [number for each in record.counted for number in each]
        if ranges != sorted(ranges) or (ranges and ranges[0] < 0):
            raise ValueError("the numbers of events are not in order")
        states = [
            from_arrays(member.stream.encoder, {n[len(key) :]: x for n, x in arrays.items() if n.startswith(key)})
            for member, key in ((member, f"{number}/") for number, member in enumerate(self.members))
        ]
        if any(state.num_nodes > len(names) or state.now != states[0].now for state in states):
            raise ValueError("members have other nodes, or another time")
        if any("/" in name and int(name.partition("/")[0]) >= len(states) for name in arrays):
            raise ValueError("there are arrays of another member")
        for member, state in zip(self.members, states, strict=True):
            member.stream.state = state
        self.nodes = {name: number for number, name in enumerate(names)}
        self.counted, self.recent = Numbers(record.counted), OrderedDict(record.answers[-ANSWERS:])
        self.history = record.history
        self.position = Position(self.counted.last, record.events, states[0].now)

    def _find(self, name: str) -> int:
        """The number of a node, a new one if it is not known."""
        found = self.nodes.get(name)
        if found is None:
            found = self.nodes[name] = len(self.nodes)
            if self.features is not None:
                self.features.reserve(found)
                self.features[found][:] = self._unknown
        return found


def _split_names(text: Array | None, lengths: Array | None) -> list[str]:
    if text is None or lengths is None or text.dtype != np.uint8 or lengths.dtype != np.int64 or lengths.ndim != 1:
        raise ValueError("ids are missing")
    ends = np.cumsum(lengths)
    if (lengths < 0).any() or int(lengths.sum()) != text.size:
        raise ValueError("ids are not as long as they are said to be")
    raw = text.tobytes()
    starts = (ends - lengths).tolist()
    names = [
        raw[first:last].decode("utf-8", "surrogatepass") for first, last in zip(starts, ends.tolist(), strict=True)
    ]
    if len(set(names)) < len(names):
        raise ValueError("an id comes twice")
    return names


def check_run(run: Predictor) -> None:
    """Raise unless a run can be fed event by event."""
    if not run.inputs.causal:
        raise RunError(
            "the run has no causal layers, expected a model of edges that was trained with their times "
            f"({name_option('--time')}): others read the whole graph"
        )
    if "edge" not in run.targets:
        raise RunError(f"the run predicts {', '.join(run.levels)}, expected edges: an event is an edge")
