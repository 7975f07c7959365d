"""The history before a stream, fed to it in one pass."""

from __future__ import annotations

import numpy as np

from censnet.data.dataset import Dataset
from censnet.errors import DataError, RunError
from censnet.nn.causal_encoder import CausalEncoder
from censnet.nn.stream_warm_up import state_after
from censnet.ops.arrays import IntArray
from censnet.ops.graph import Graph
from censnet.runs.history import node_names
from censnet.runs.known_labels_in_prediction import read_labels
from censnet.runs.stream import Stream
from censnet.runs.stream_lines import Numbers, read_number
from censnet.text import count


def feed_history(stream: Stream, data: object) -> None:
    """Feed a stream that is empty with a table of edges and their labels, in one pass.

    Its rows get their numbers from the column of numbers, or 1, 2, ... in the order of the table.
    """
    if stream.position.events:
        raise RunError(f"the stream has {count(stream.position.events, 'event')}, expected none before a history")
    run = stream.run
    dataset = run.read(data)
    graph = dataset.graph
    if not isinstance(graph, Graph) or graph.times is None:
        raise DataError("the history has no times, expected a table of edges with them")
    labels = read_labels(dataset, "edge", stream.known) if stream.known else None
    whole = run.inputs.add(graph)
    assert isinstance(whole, Graph)
    if labels is not None:
        whole = run.inputs.show(whole, {"edge": labels}, {"edge": ~labels.isnan().all(1)})
    numbers, counted = _numbers(dataset, stream.reader.number)
    for member in stream.members:
        encoder = member.stream.encoder
        assert isinstance(encoder, CausalEncoder)
        member.stream.state = state_after(encoder, whole.nodes, whole.edges, whole.incidence, graph.times, numbers)
    for name in node_names(dataset):
        stream._find(name)
    if stream.features is not None:
        stream.features.fill(graph.nodes.double().numpy())
    if not graph.num_edges:
        return
    stream.counted, stream.history = Numbers(counted), dataset.name
    position = stream.position
    position.event, position.events, position.now = stream.counted.last, graph.num_edges, float(graph.times.max())


def _numbers(dataset: Dataset, column: str) -> tuple[list[int], list[tuple[int, int]]]:
    """The number of each edge, and the ranges of all of them."""
    rows, frame = dataset.rows("edge").numpy(), dataset.tables.edges
    good = np.flatnonzero(rows >= 0)
    if frame is not None and column in frame.columns:
        given = np.array([_read(frame[column].iloc[row], column, row, dataset) for row in good.tolist()], np.int64)
    else:
        given = good + 1
    numbers = np.full(dataset.count("edge"), -1, np.int64)
    numbers[rows[good][::-1]] = given[::-1]  # of rows that are one edge, that of the first
    every = np.unique(given)
    if len(every) < len(given):
        raise DataError(
            "has a number twice, expected a number for each event", dataset.tables.name("edges"), column=column
        )
    return numbers.tolist(), _ranges(every)


def _read(value: object, column: str, row: int, dataset: Dataset) -> int:
    try:
        return read_number(value.item() if isinstance(value, np.generic) else value, column)
    except DataError as error:
        raise DataError(error.found, dataset.tables.name("edges"), row, column) from None


def _ranges(numbers: IntArray) -> list[tuple[int, int]]:
    """Numbers in rising order as ranges.

    >>> _ranges(np.array([1, 2, 3, 7]))
    [(1, 3), (7, 7)]
    """
    if not len(numbers):
        return []
    breaks = np.flatnonzero(np.diff(numbers) > 1)
    first, last = np.append(0, breaks + 1), np.append(breaks, len(numbers) - 1)
    return list(zip(numbers[first].tolist(), numbers[last].tolist(), strict=True))
