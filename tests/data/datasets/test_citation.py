from __future__ import annotations

import gzip
import os
import pickle
import shutil
import warnings
from collections import defaultdict
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from torch.testing import assert_close
from torch_geometric.datasets import Planetoid
from torch_geometric.utils import is_undirected

from censnet.data.datasets import citation
from censnet.data.datasets.catalogue import DATASETS
from censnet.data.datasets.citation import Citation, cosine, normalize_rows, read_citation
from censnet.data.datasets.karate import read_karate
from censnet.data.datasets.planetoid import read_planetoid, unpickle
from censnet.errors import DataError
from censnet.ops.graph import Graph

NAMES = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}
LINQS = {"cora": "cora", "citeseer": "citeseer", "pubmed": "Pubmed-Diabetes"}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_graph_is_that_of_pytorch_geometric(real_data: Path, tmp_path: Path, name: str):
    shutil.copytree(real_data / "planetoid" / NAMES[name], tmp_path / NAMES[name], copy_function=shutil.copyfile)
    os.chmod(tmp_path / NAMES[name], 0o755)  # the original may be read-only
    os.chmod(tmp_path / NAMES[name] / "raw", 0o755)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = Planetoid(str(tmp_path), NAMES[name])[0]
    ours = read_citation(name)
    assert is_undirected(theirs.edge_index)
    once = theirs.edge_index[:, theirs.edge_index[0] < theirs.edge_index[1]]
    assert_close(ours.graph.ends, once[:, (once[0] * theirs.num_nodes + once[1]).argsort()])
    assert_close(ours.graph.nodes.to_dense(), theirs.x, rtol=0, atol=0)
    labeled = ours.labels >= 0
    assert_close(ours.labels[labeled], theirs.y[labeled])
    assert int(theirs.y[~labeled].sum()) == 0  # what it says of papers without a class


@pytest.mark.parametrize("name", NAMES)
def test_the_counts_are_those_of_the_catalogue(real_data: Path, name: str):
    read = read_citation(name)
    counts = {"nodes": 0, "links": 0, "features": 0, "classes": 0}
    counts |= {"nodes": read.graph.num_nodes, "links": read.graph.num_edges}
    counts |= {"features": read.graph.node_width, "classes": int(read.labels.max()) + 1}
    assert counts == DATASETS[name].counts
    assert len(read.classes) == counts["classes"]
    assert int((read.labels < 0).sum()) == (15 if name == "citeseer" else 0)
    assert read.graph.nodes.layout == torch.sparse_csr
    assert read.graph.nodes.dtype == torch.float32


@pytest.mark.parametrize("name", NAMES)
def test_the_directions_are_those_of_the_original_links(real_data: Path, name: str):
    read = read_citation(name)
    links = pd.read_csv(real_data / "linqs" / LINQS[name] / "planetoid_directed_edges.csv.gz")
    cites = set(zip(links.citing.tolist(), links.cited.tolist(), strict=True))
    first, second = read.graph.ends.tolist()
    expected = [[(a, b) in cites, (b, a) in cites] for a, b in zip(first, second, strict=True)]
    assert_close(read.graph.edges[:, 1:], torch.tensor(expected, dtype=torch.float32))
    both = int((read.graph.edges[:, 1:].sum(1) == 2).sum())
    assert both == {"cora": 151, "citeseer": 56, "pubmed": 11}[name]
    loops = {"cora": 0, "citeseer": 124, "pubmed": 3}[name]
    assert len(links) == read.graph.num_edges + both + loops


@pytest.mark.parametrize("name", NAMES)
def test_the_similarity_is_the_cosine_of_the_two_papers(real_data: Path, name: str):
    graph = read_citation(name).graph
    some = torch.randperm(graph.num_edges, generator=torch.Generator().manual_seed(0))[:500]
    words = graph.nodes.to_dense().double()
    first, second = (words[end] for end in graph.ends[:, some])
    expected = torch.nn.functional.cosine_similarity(first, second).nan_to_num()
    assert_close(graph.edges[some, 0].double(), expected, rtol=0, atol=1e-6)


def same(one: Citation, other: Citation) -> bool:
    parts = ((one.graph.nodes.to_dense(), other.graph.nodes.to_dense()), (one.graph.edges, other.graph.edges))
    parts += ((one.graph.ends, other.graph.ends), (one.labels, other.labels))
    return all(torch.equal(a, b) for a, b in parts) and one.classes == other.classes


@pytest.mark.parametrize("compressed", [True, False])
def test_cora_from_linqs_is_cora_from_planetoid_to_the_bit(real_data, tmp_path, monkeypatch, compressed):
    planetoid = read_citation("cora")
    folder = tmp_path / "linqs" / "cora"
    folder.mkdir(parents=True)
    shutil.copyfile(real_data / "linqs" / "cora" / "cora.cites", folder / "cora.cites")
    content = (real_data / "linqs" / "cora" / "cora.content.gz").read_bytes()
    if compressed:
        (folder / "cora.content.gz").write_bytes(content)
    else:
        (folder / "cora.content").write_bytes(gzip.decompress(content))
    monkeypatch.setenv("CENSNET_DATA", str(tmp_path))
    assert same(read_citation("cora"), planetoid)


def test_the_class_names_of_citeseer_are_those_of_linqs(real_data: Path):
    read = read_citation("citeseer")
    papers = pd.read_csv(real_data / "linqs" / "citeseer" / "planetoid_paper_ids.csv.gz", dtype=str).paper_id
    with gzip.open(real_data / "linqs" / "citeseer" / "citeseer.content.gz", "rt") as stream:
        kind = {line.split("\t", 1)[0]: line.rsplit("\t", 1)[1].strip() for line in stream}
    named = [read.classes[label] if label >= 0 else None for label in read.labels.tolist()]
    assert named == [kind.get(paper) for paper in papers]


def test_an_unknown_graph_is_refused():
    with pytest.raises(
        ValueError, match="no citation graph is called 'reddit', expected one of cora, citeseer, pubmed"
    ):
        read_citation("reddit")


# The rest needs no original file.


OLD_NAMES = {
    b"cnumpy._core.multiarray\n": b"cnumpy.core.multiarray\n",
    b"cscipy.sparse._csr\n": b"cscipy.sparse.csr\n",
    b"cbuiltins\n": b"c__builtin__\n",
}


def write_planetoid(folder: Path) -> dict[str, Path]:
    """Six papers: 0-2 in `allx`, tests at 5 and 3 in that order, and 4 without words, as the 15 of CiteSeer."""
    allx = sp.csr_matrix(np.array([[1, 0, 1], [0, 1, 1], [1, 1, 0]], dtype=np.float32))
    tx = sp.csr_matrix(np.array([[0, 0, 1], [1, 0, 0]], dtype=np.float32))
    graph = defaultdict(list, {0: [1, 2, 2], 1: [0], 2: [0, 0, 5], 3: [3, 4], 4: [3], 5: [2]})
    parts = {"allx": allx, "tx": tx, "x": allx[:1], "graph": graph}
    parts |= {"ally": np.eye(2)[[0, 1, 0]], "ty": np.eye(2)[[1, 0]], "y": np.eye(2)[[0]]}
    files = {}
    for part, value in parts.items():
        content = pickle.dumps(value, protocol=3)
        for new, old in OLD_NAMES.items():
            content = content.replace(new, old)
        files[f"ind.tiny.{part}"] = folder / part
        files[f"ind.tiny.{part}"].write_bytes(content)
    files["ind.tiny.test.index"] = folder / "test.index"
    files["ind.tiny.test.index"].write_text("5\n3\n")
    return files


def test_papers_go_to_the_places_of_the_test_index(tmp_path, monkeypatch):
    papers = read_planetoid(write_planetoid(tmp_path), "tiny")
    words = [[1, 0, 1], [0, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert papers.words.toarray().tolist() == words
    assert papers.labels.tolist() == [0, 1, 0, 0, -1, 1]
    monkeypatch.setitem(citation.CLASSES, "tiny", ("a", "b"))
    bits = np.array([1, 0, 1, 0, 0, 1, 1, 1])  # 0-1, 0-2, 2-5, 3-4: forward, then backward
    monkeypatch.setattr(citation, "_bundled", lambda key: np.packbits(bits).tobytes().hex())
    graph = citation.assemble("tiny", papers).graph
    assert graph.ends.t().tolist() == [[0, 1], [0, 2], [2, 5], [3, 4]]  # once each, without the loop at 3
    assert graph.edges[:, 1:].tolist() == [[1, 0], [0, 1], [1, 1], [0, 1]]
    assert_close(graph.edges[:, 0], torch.tensor([0.5, 0.5, 0.0, 0.0]))


def test_cosine_by_hand():
    words = sp.csr_matrix(np.array([[3.0, 4.0], [4.0, 3.0], [0.0, 0.0]]))
    found = cosine(words, np.array([[0, 0, 1], [1, 0, 2]]))
    np.testing.assert_allclose(found, [24 / 25, 1, 0])


def test_cosine_of_a_large_graph_builds_nothing_of_its_square():
    nodes = 300_000
    random = np.random.default_rng(0)
    words = sp.csr_matrix((np.ones(2 * nodes), random.integers(0, 1000, 2 * nodes), np.arange(0, 2 * nodes + 1, 2)))
    ends = random.integers(0, nodes, (2, 100_000))
    assert cosine(words, ends).shape == (100_000,)


def test_normalized_rows_sum_to_one_and_stay_sparse():
    words = torch.tensor([[2.0, 0, 6], [0, 0, 0], [0, 5, 0]]).to_sparse_csr()
    out = normalize_rows(words)
    assert out.layout == torch.sparse_csr
    assert_close(out.to_dense(), torch.tensor([[0.25, 0, 0.75], [0, 0, 0], [0, 1, 0]]))


class Attack:
    def __init__(self, flag: Path) -> None:
        self.flag = flag

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.flag}",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_runs_a_command_is_refused_and_nothing_runs(tmp_path: Path, protocol: int):
    content = pickle.dumps(Attack(tmp_path / "ran"), protocol=protocol)
    with pytest.raises(DataError, match=r"ind.cora.x: not a file of Planetoid: it asks for \w+.system"):
        unpickle(content, "ind.cora.x")
    assert not (tmp_path / "ran").exists()
    pickle.loads(content)  # shows that the attack would have worked
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no pickle",
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cnumpy\nload\n.",
        b"cnumpy\ndtype.__class__\n.",
        b"(lp0\ncnumpy\nndarray\n(I-1\ntR.",
        b"cscipy.sparse.csr\ncsr_matrix\n(tR.",
    ],
)
def test_a_broken_or_foreign_pickle_is_a_data_error(content: bytes):
    with pytest.raises(DataError, match="not a file of Planetoid"):
        unpickle(content, "ind.cora.x")


def test_the_karate_club_is_that_of_networkx():
    club, known = read_karate(), nx.karate_club_graph()
    assert {tuple(pair) for pair in club.ends.t().tolist()} == {tuple(sorted(pair)) for pair in known.edges}
    assert [club.classes[label] for label in club.labels.tolist()] == [known.nodes[n]["club"] for n in range(34)]
    assert Graph(torch.ones(34, 1), torch.ones(78, 1), club.ends).num_edges == DATASETS["karate"].counts["links"]
