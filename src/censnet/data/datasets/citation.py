"""Cora, CiteSeer and PubMed with the paper's edge features, the same to the last bit from every source.

Papers are numbered as in Planetoid, as in everyone's results on these sets. The files of Planetoid do not say who
cites whom, and those of LINQS, which do, number the papers otherwise. `citation.json` beside this file joins the two.
It holds two bits for each link, whether its first paper cites its second and its second its first, in the sorted order
of the links, as hexadecimal text, and for Cora the row of `cora.content` that each paper is. A test makes it again from
the original files.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from censnet.data.datasets.download import find
from censnet.data.datasets.planetoid import Papers, read_planetoid
from censnet.errors import ArgumentError
from censnet.ops.arrays import IntArray
from censnet.ops.graph import Graph

CLASSES = {
    "cora": (
        "Theory",
        "Reinforcement_Learning",
        "Genetic_Algorithms",
        "Neural_Networks",
        "Probabilistic_Methods",
        "Case_Based",
        "Rule_Learning",
    ),
    "citeseer": ("AI", "ML", "IR", "DB", "Agents", "HCI"),
    "pubmed": ("Experimental", "Type 1", "Type 2"),  # kinds of diabetes, by the sizes that LINQS gives
}
EDGE_NAMES = ("cosine", "first_cites_second", "second_cites_first")
RELEASED_NAMES = ("cosine_distance", "first_cites_second", "first_does_not_cite_second")


@dataclass(frozen=True, eq=False)
class Citation:
    """A citation graph.

    Args:
        name: ``"cora"``, ``"citeseer"`` or ``"pubmed"``.
        graph: papers with their words (CSR) and links with three features, each link once, smaller number first.
        labels: the class of each paper as its place in `classes`, -1 where it has none.
        classes: their names.
        edge_names: what the three features of a link are.
    """

    name: str
    graph: Graph
    labels: Tensor
    classes: list[str]
    edge_names: tuple[str, ...] = EDGE_NAMES


def read_citation(name: str) -> Citation:
    """Read a citation graph, from wherever its files are (`sources.py`).

    The words are as Planetoid has them: 0 or 1 in Cora and CiteSeer, TF-IDF in PubMed (`normalize_rows` divides by
    their sum). A link has the cosine similarity of the words of its two papers and their direction, "If paper A cites
    paper B then the vector is [1,0], otherwise [0,1]", where A is the first end. Two papers that cite each other (151
    pairs in Cora, 56 in CiteSeer, 11 in PubMed) are two links with one vector each, here one link with [1, 1]. Papers
    that cite themselves (CiteSeer, PubMed) lose that link, as in PyTorch Geometric.

    In CiteSeer 15 papers have no words and no class. Their rows are zero, as in PyTorch Geometric; their label is -1,
    where that library puts class 0. A cosine with such a paper is 0.
    """
    if name not in CLASSES:
        raise ArgumentError(f"no citation graph is called {name!r}, expected one of {', '.join(CLASSES)}")
    files = find(name)
    papers = read_planetoid(files, name) if f"ind.{name}.graph" in files else _read_linqs(files)
    return assemble(name, papers)


def assemble(name: str, papers: Papers) -> Citation:
    """The graph of what was read."""
    pairs = np.sort(papers.pairs[papers.pairs[:, 0] != papers.pairs[:, 1]], axis=1)
    ends = np.unique(pairs, axis=0).T
    edges = np.column_stack([cosine(papers.words, ends), _known(name, 2 * ends.shape[1]).reshape(2, -1).T])
    graph = Graph(
        nodes=to_tensor(papers.words),
        edges=torch.from_numpy(edges.astype(np.float32)),
        ends=torch.from_numpy(np.ascontiguousarray(ends)),
    )
    return Citation(name, graph, torch.from_numpy(papers.labels), list(CLASSES[name]))


def cosine(words: sp.csr_matrix, ends: IntArray) -> NDArray[np.float64]:
    """The cosine similarity of the two ends of each link, from their common words alone: (2, E) -> (E,)."""
    words = words.astype(np.float64)
    length = np.sqrt(np.asarray(words.multiply(words).sum(1))).ravel()
    common = np.asarray(words[ends[0]].multiply(words[ends[1]]).sum(1)).ravel()
    scale = length[ends[0]] * length[ends[1]]
    similarity: NDArray[np.float64] = np.divide(common, scale, out=np.zeros_like(common), where=scale > 0)
    return similarity


def normalize_rows(nodes: Tensor) -> Tensor:
    """Words divided by their sum in each paper, as most models on these sets take them; a row of zeros stays so.

    >>> words = torch.tensor([[1.0, 0.0, 3.0], [0.0, 0.0, 0.0]]).to_sparse_csr()
    >>> normalize_rows(words).to_dense().tolist()
    [[0.25, 0.0, 0.75], [0.0, 0.0, 0.0]]
    """
    first, column, value = nodes.crow_indices(), nodes.col_indices(), nodes.values()
    row = torch.repeat_interleave(torch.arange(len(first) - 1, device=value.device), first.diff())
    total = value.new_zeros(len(first) - 1).index_add(0, row, value)[row]
    return _csr(first, column, torch.where(total == 0, value, value / total), nodes.shape)


def released_links(edges: Tensor) -> Tensor:
    """The features of links as the authors' code has them: cosine distance, one direction, rows of sum 1.

    >>> released_links(torch.tensor([[0.5, 1.0, 0.0], [1.0, 1.0, 1.0]]))
    tensor([[0.3333, 0.6667, 0.0000],
            [0.0000, 1.0000, 0.0000]])
    """
    cosine, forwards, _ = edges.unbind(1)
    features = torch.stack([1 - cosine, forwards, 1 - forwards], dim=1)
    return features / features.sum(1, keepdim=True)


def to_tensor(matrix: sp.csr_matrix) -> Tensor:
    """A scipy matrix as a tensor, in float32."""
    matrix.sum_duplicates()
    matrix.sort_indices()
    first, column = (torch.from_numpy(part.astype(np.int64)) for part in (matrix.indptr, matrix.indices))
    return _csr(first, column, torch.from_numpy(matrix.data.astype(np.float32)), matrix.shape)


def _csr(first: Tensor, column: Tensor, value: Tensor, shape: tuple[int, ...]) -> Tensor:
    return torch.sparse_csr_tensor(first, column, value, shape, check_invariants=True)


def _read_linqs(files: dict[str, Path]) -> Papers:
    """Cora from `cora.content` (id, words, class) and `cora.cites` (cited, citing), in the order of Planetoid."""
    path = files.get("cora.content") or files["cora.content.gz"]
    text = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode("ascii")
    lines = text.splitlines()
    lines = [lines[row] for row in map(int, _bundled("cora_rows").split())]
    paper = {line.split("\t", 1)[0]: number for number, line in enumerate(lines)}
    kind = {label: number for number, label in enumerate(CLASSES["cora"])}
    labels = np.array([kind[line.rsplit("\t", 1)[1]] for line in lines])
    words = np.stack(
        [np.frombuffer(line[line.index("\t") + 1 : line.rindex("\t")].encode(), "S1")[::2] for line in lines]
    )
    cites = files["cora.cites"].read_text("ascii").split()
    pairs = np.array([paper[each] for each in cites]).reshape(-1, 2)
    return Papers(sp.csr_matrix((words == b"1").astype(np.float32)), labels, pairs)


def _bundled(key: str) -> str:
    """One entry of `citation.json`, whose text is cut into lines."""
    bundle = json.loads(Path(__file__).with_name("citation.json").read_text("ascii"))
    return " ".join(bundle[key])


def _known(name: str, count: int) -> NDArray[np.uint8]:
    return np.unpackbits(np.frombuffer(bytes.fromhex(_bundled(name)), np.uint8), count=count)
