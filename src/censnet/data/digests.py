"""Digests by which rows and graphs are known again.

The digest of a node is of its id and its features, that of an edge of its two ends and its features. That of a graph is
of its structure with all features, whatever the order of its nodes: another spelling of the same SMILES has the same.
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
from censnet.data.tables.schema import TableSchema
from censnet.files import tensor_digest
from censnet.levels import Level
from censnet.ops.colors import hash_graphs, hash_rows, splitmix64
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet

Digests = NDArray[np.uint64]
LETTERS = bytes.maketrans(b"0123456789abcdef", b"abcdefghijklmnop")  # no digest looks like a number
HEXADECIMAL = bytes.maketrans(b"abcdefghijklmnop", b"0123456789abcdef")


def row_digests(data: Dataset, level: str) -> Digests:
    """A digest for each INPUT row of a level; that of a row that cannot be used means nothing."""
    level, rows, graph = Level.of_column(level), data.rows(level), data.graph
    whole = hash_graphs(graph).cpu() if isinstance(graph, GraphSet) else torch.zeros(graph.num_graphs, dtype=torch.long)
    if level is Level.GRAPH:
        return _unsigned(_at(whole, rows))
    schema, frame = data.schema.table(level.table), data.tables.frames()[level.table]
    features = level.features(graph)
    own = schema.structure == "none" and features is not None
    found = _at(hash_rows(features).cpu(), rows) if own and features is not None else torch.zeros_like(rows)
    found = hash_ids(found, level, schema, frame)
    if isinstance(graph, GraphSet):
        found = splitmix64(found + _at(whole[level.owners(graph).cpu()], rows))
    return _unsigned(found)


def hash_ids(hashes: Tensor, level: Level, schema: TableSchema, frame: pd.DataFrame) -> Tensor:
    """The hashes of the features of rows, with those of their ids. (n,)"""
    for role in level.made_keys:
        column = schema.keys.get(role)
        if column is not None and column in frame.columns:
            hashes = splitmix64(3 * hashes + _hash_texts(frame[column]))
    return hashes


def spell_digests(digests: Digests) -> list[str]:
    """Digests as text of sixteen letters.

    >>> spell_digests(np.array([1, 2**64 - 1], np.uint64))
    ['aaaaaaaaaaaaaaab', 'pppppppppppppppp']
    """
    text = binascii.hexlify(digests.astype(">u8").tobytes()).translate(LETTERS).decode()
    return [text[start : start + 16] for start in range(0, len(text), 16)]


def read_digests(texts: pd.Series[Any]) -> Digests:
    """Read digests as `spell_digests` writes them; texts of any other form are left out.

    >>> read_digests(pd.Series(spell_digests(np.array([7, 8], np.uint64)) + [None, "?"]))
    array([7, 8], dtype=uint64)
    """
    good = texts[texts.astype("string").str.fullmatch("[a-p]{16}", na=False)]
    raw = binascii.unhexlify("".join(good.tolist()).encode().translate(HEXADECIMAL))
    return np.frombuffer(raw, ">u8").astype(np.uint64)


def _hash_texts(values: pd.Series[Any]) -> Tensor:
    encoded = pc.fill_null(as_text(as_arrow(values)), "").combine_chunks().dictionary_encode()
    words = np.array(encoded.dictionary.to_pylist(), dtype=object)
    hashed = (
        np.asarray(pd.util.hash_array(words, categorize=False), np.uint64) if len(words) else words.astype(np.uint64)
    )
    return torch.from_numpy(hashed[encoded.indices.to_numpy()].view(np.int64))


def _at(digests: Tensor, rows: Tensor) -> Tensor:
    """The digest of each input row; 0 for a row that became nothing."""
    return torch.cat([digests, digests.new_zeros(1)])[rows]


def _unsigned(digests: Tensor) -> Digests:
    return np.asarray(digests.numpy().view(np.uint64))


def fingerprint(graph: Graph | GraphSet) -> str:
    """The SHA-256 of a graph's tensors."""
    tensors = {"edges": graph.edges, "ends": graph.ends}
    if graph.nodes.layout == torch.sparse_csr:
        rows, columns, values = graph.nodes.crow_indices(), graph.nodes.col_indices(), graph.nodes.values()
        tensors |= {"node rows": rows, "node columns": columns, "node values": values}
    else:
        tensors["nodes"] = graph.nodes
    if isinstance(graph, GraphSet):
        tensors |= {"node_offset": graph.node_offset, "edge_offset": graph.edge_offset}
    if graph.graph_features is not None:
        tensors["graphs"] = graph.graph_features
    if graph.times is not None:
        tensors["times"] = graph.times
    return tensor_digest(tensors)
