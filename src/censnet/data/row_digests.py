"""Digests of rows, by which rows that a network was trained on are recognized when they are read again.

A node is its id and its features, an edge its two ends and its features. A graph is its structure with all features,
whatever the order of its nodes: another spelling of the same SMILES has the same digest.
"""

from __future__ import annotations

import binascii
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor

from censnet.data.dataset import Dataset
from censnet.data.tables.columns import as_arrow, as_text
from censnet.data.tables.targets import table_of
from censnet.ops.graph import GraphSet

Digests = NDArray[np.uint64]
ROUNDS = 3  # of passing digests from node to node; structures that differ farther away than that are not told apart
_BLOCK = 1 << 22  # numbers that are hashed at a time
_LETTERS = bytes.maketrans(b"0123456789abcdef", b"abcdefghijklmnop")  # no digest looks like a number
_DIGITS = bytes.maketrans(b"abcdefghijklmnop", b"0123456789abcdef")


def row_digests(data: Dataset, level: str) -> Digests:
    """A digest for each INPUT row of a level; that of a row that cannot be used says nothing."""
    rows, frame = data.rows(level).numpy(), data.tables.frames()[table_of(level)]
    graph = data.graph
    whole = _graph_digests(graph) if isinstance(graph, GraphSet) else None
    if level == "graph":
        return np.zeros(len(rows), np.uint64) if whole is None else _at(whole, rows)
    features = graph.nodes if level == "node" else graph.edges
    structure = data.schema.nodes.structure if level == "node" else data.schema.edges.structure
    found = np.zeros(len(rows), np.uint64) if structure != "none" else _at(hash_rows(features), rows)
    keys = data.schema.table(table_of(level)).keys
    for role in ("id",) if level == "node" else ("source", "target"):
        column = keys.get(role)
        if column is not None and column in frame.columns:
            found = _mix(found * np.uint64(3) + _hash_texts(frame[column]))
    if whole is not None and isinstance(graph, GraphSet):
        offset = graph.node_offset if level == "node" else graph.edge_offset
        owner = np.repeat(np.arange(len(graph)), offset.diff().numpy())
        found = _mix(found + _at(whole[owner], rows))
    return found


def hash_rows(features: Tensor) -> Digests:
    """A number for each row of a table of features; equal rows have equal ones.

    >>> one, two, three = hash_rows(torch.tensor([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]])).tolist()
    >>> one == two, one == three
    (True, False)
    """
    width = features.shape[1]
    place = _mix(np.arange(1, width + 1, dtype=np.uint64))
    found = np.zeros(len(features), np.uint64)
    step = max(1, _BLOCK // max(width, 1))
    for start in range(0, len(features) if width else 0, step):
        part = features[start : start + step].detach()
        part = part.to_dense() if part.layout != torch.strided else part
        bits = (part.float().cpu() + 0.0).contiguous().numpy().view(np.uint32).astype(np.uint64)
        found[start : start + step] = _mix(bits + place).sum(axis=1, dtype=np.uint64)
    return found


def spell_digests(digests: Digests) -> list[str]:
    """Digests as text of sixteen letters.

    >>> spell_digests(np.array([1, 2**64 - 1], np.uint64))
    ['aaaaaaaaaaaaaaab', 'pppppppppppppppp']
    """
    text = binascii.hexlify(digests.astype(">u8").tobytes()).translate(_LETTERS).decode()
    return [text[start : start + 16] for start in range(0, len(text), 16)]


def read_digests(texts: pd.Series[Any]) -> Digests:
    """What `spell_digests` wrote; texts of any other form are left out.

    >>> read_digests(pd.Series(spell_digests(np.array([7, 8], np.uint64)) + [None, "?"]))
    array([7, 8], dtype=uint64)
    """
    good = texts[texts.astype("string").str.fullmatch("[a-p]{16}", na=False)]
    raw = binascii.unhexlify("".join(good.tolist()).encode().translate(_DIGITS))
    return np.frombuffer(raw, ">u8").astype(np.uint64)


def _graph_digests(graphs: GraphSet) -> Digests:
    """A digest of each graph, the same for any order of its nodes and edges (Weisfeiler and Leman's refinement)."""
    nodes, edges = hash_rows(graphs.nodes.cpu()), hash_rows(graphs.edges.cpu())
    count = np.arange(len(graphs))
    owner = np.repeat(count, graphs.node_offset.diff().cpu().numpy())
    edge_owner = np.repeat(count, graphs.edge_offset.diff().cpu().numpy())
    first, second = graphs.ends.cpu().numpy() + graphs.node_offset.cpu().numpy()[edge_owner]
    for _ in range(ROUNDS):
        heard = np.zeros_like(nodes)
        for here, there in ((first, second), (second, first)):
            np.add.at(heard, here, _mix(edges + _mix(nodes[there])))
        nodes = _mix(nodes * np.uint64(3) + heard)
    found = np.zeros(len(graphs), np.uint64)
    np.add.at(found, owner, _mix(nodes))
    np.add.at(found, edge_owner, _mix(edges))
    return _mix(found)


def _hash_texts(values: pd.Series[Any]) -> Digests:
    encoded = pc.fill_null(as_text(as_arrow(values)), "").combine_chunks().dictionary_encode()
    words = np.array(encoded.dictionary.to_pylist(), dtype=object)
    hashed = (
        np.asarray(pd.util.hash_array(words, categorize=False), np.uint64) if len(words) else words.astype(np.uint64)
    )
    return np.asarray(hashed[encoded.indices.to_numpy()])


def _at(digests: Digests, rows: NDArray[np.int64]) -> Digests:
    """The digest of each input row; 0 for a row that became nothing."""
    return np.append(digests, np.uint64(0))[rows]


def _mix(numbers: Digests) -> Digests:
    """SplitMix64's finalizer: each bit of what comes in changes about half of those that go out."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
