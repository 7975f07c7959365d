"""The score of a pair against a slow loop that appends it to the graph as an edge and applies the printed edge rule."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import incidences
from torch import Tensor

from censnet.nn import CensNet
from censnet.nn import pair_decoder as module
from censnet.nn.diffusion import diffusion_embedding
from censnet.nn.pair_decoder import STEP, PairDecoder, PairInputs
from censnet.ops import Incidence, textbook
from censnet.ops.graph import Graph
from censnet.ops.sparse import products_with_all, row_products, unit_rows

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")

TANGLE = Incidence(torch.tensor([[0, 1, 2, 1, 3, 3, 3], [1, 2, 0, 0, 3, 4, 3]]), 6)  # parallel, loops, an isolated node


def rows(count: int, width: int, seed: int = 0) -> Tensor:
    return torch.randn(count, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def make(
    incidence: Incidence, seed: int = 0, features: bool = True, diffusion_steps: int = 0
) -> tuple[PairDecoder, Tensor, Tensor, Graph]:
    """A decoder with every weight at random, embedded nodes and edges, and the graph with features of its own."""
    torch.manual_seed(seed)
    decoder = PairDecoder(4, 3, 5, features, diffusion_steps=diffusion_steps).double()
    for parameter in decoder.parameters():
        torch.nn.init.normal_(parameter)
    nodes, edges = rows(incidence.num_nodes, 4, seed), rows(incidence.num_edges, 3, seed + 1)
    graph = Graph(rows(incidence.num_nodes, 7, seed + 2), edges, incidence.ends)
    return decoder, nodes, edges, graph


def all_pairs(num_nodes: int) -> Tensor:
    return torch.combinations(torch.arange(num_nodes)).t()


def slow_edge(decoder: PairDecoder, nodes: Tensor, edges: Tensor, incidence: Incidence, i: int, j: int) -> Tensor:
    """The last row of the printed rule on the graph with an edge i-j more, which has nothing of its own."""
    T = textbook.incidence_matrix(torch.cat([incidence.ends, torch.tensor([[i], [j]])], dim=1), incidence.num_nodes)
    u = 2 * torch.sigmoid(nodes @ decoder.gate_weight)[:, 0]
    H = torch.cat([edges @ decoder.edge_projection, edges.new_zeros(1, decoder.edge_projection.shape[1])])
    return (textbook.edge_operator(T, u) @ H)[-1]


def slow_score(decoder: PairDecoder, nodes: Tensor, edges: Tensor, graph: Graph, i: int, j: int) -> Tensor:
    z, x = nodes @ decoder.projection, graph.nodes
    score = STEP * decoder.embedding_weight * F.cosine_similarity(z[i], z[j], dim=0) + decoder.bias
    if decoder.features:
        score = score + STEP * decoder.feature_weight * F.cosine_similarity(x[i], x[j], dim=0)
    if decoder.diffusion_steps:
        k = diffusion_embedding(graph.nodes, graph.incidence, decoder.diffusion_steps, torch.float64)
        score = score + STEP * decoder.diffusion_weight * F.cosine_similarity(k[i], k[j], dim=0)
    e = slow_edge(decoder, nodes, edges, graph.incidence, i, j)
    return score + (decoder.edge_weight[:, 0] * (e + decoder.edge_bias).relu()).sum()


def joined(incidence: Incidence) -> set[tuple[int, int]]:
    return {(min(i, j), max(i, j)) for i, j in incidence.ends.t().tolist()}


# -- the formula -------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(
    incidence=incidences(), seed=st.integers(0, 2**16), features=st.booleans(), diffusion_steps=st.sampled_from([0, 3])
)
def test_a_pair_without_an_edge_is_scored_as_if_it_were_appended(
    incidence: Incidence, seed: int, features: bool, diffusion_steps: int
) -> None:
    decoder, nodes, edges, graph = make(incidence, seed, features, diffusion_steps)
    free = [pair for pair in all_pairs(incidence.num_nodes).t().tolist() if tuple(pair) not in joined(incidence)]
    if not free:
        return
    free = free[:12]
    found = decoder.score(decoder(nodes, edges, graph), torch.tensor(free).t())
    expected = torch.stack([slow_score(decoder, nodes, edges, graph, i, j) for i, j in free])
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def test_an_edge_that_is_there_already_is_left_out_of_the_degree_of_the_next() -> None:
    """Where m edges join the pair, the printed degree is less by m: the one difference to the rule."""
    decoder, nodes, edges, graph = make(TANGLE)
    inputs = decoder(nodes, edges, graph)
    for (i, j), m in {(0, 1): 2, (1, 2): 1, (3, 4): 1}.items():
        degree = int(TANGLE.edge_count[i] + TANGLE.edge_count[j]) + 1
        expected = slow_edge(decoder, nodes, edges, TANGLE, i, j) * ((degree - m) / degree) ** 0.5
        torch.testing.assert_close(decoder.embed_edges(inputs, torch.tensor([[i], [j]]))[0], expected)


def test_a_triangle_that_lacks_a_side_by_hand() -> None:
    """Edges 0-1 and 1-2 with one channel, 3 and 5; the pair 0-2 has both as neighbors, each then with two."""
    graph = Graph(torch.eye(3), torch.tensor([[3.0], [5.0]]), torch.tensor([[0, 1], [1, 2]]))
    decoder = PairDecoder(1, 1, 1)
    with torch.no_grad():
        decoder.edge_projection.fill_(1.0)
    inputs = decoder(torch.ones(3, 1), graph.edges, graph)  # the gate vector starts at 0, and so every gate at 1
    found = decoder.embed_edges(inputs, torch.tensor([[0], [2]]))
    torch.testing.assert_close(found, torch.tensor([[3**-0.5 * (3 * 3**-0.5 + 5 * 3**-0.5)]]))


@given(incidence=incidences(), seed=st.integers(0, 2**16))
def test_the_two_nodes_of_a_pair_may_be_swapped(incidence: Incidence, seed: int) -> None:
    decoder, nodes, edges, graph = make(incidence, seed)
    inputs, pairs = decoder(nodes, edges, graph), all_pairs(incidence.num_nodes)
    torch.testing.assert_close(
        decoder.score(inputs, pairs), decoder.score(inputs, pairs.flip(0)), rtol=1e-12, atol=1e-12
    )


def test_sparse_features_are_read_as_dense_ones_are() -> None:
    decoder, nodes, edges, graph = make(TANGLE)
    words = (rows(6, 7, 3) > 0.3).double()
    words[2] = 0  # a paper without a word is like no other
    pairs = all_pairs(6)
    dense, sparse = (
        decoder.score(decoder(nodes, edges, Graph(x, edges, TANGLE.ends)), pairs)
        for x in (words, words.to_sparse_csr())
    )
    torch.testing.assert_close(dense, sparse)
    assert not dense.allclose(decoder.score(decoder(nodes, edges, graph), pairs))


# -- the loss ----------------------------------------------------------------------------------------------------------


def test_links_and_other_pairs_weigh_the_same_however_many_there_are() -> None:
    decoder, nodes, edges, graph = make(TANGLE)
    inputs, links, others = decoder(nodes, edges, graph), torch.tensor([[0], [1]]), all_pairs(6)[:, 5:]
    found = decoder.loss(inputs, graph, links, others)
    positive, negative = decoder.score(inputs, links).float(), decoder.score(inputs, others).float()
    torch.testing.assert_close(found, (-F.logsigmoid(positive).mean() - F.logsigmoid(-negative).mean()).to(found.dtype))
    repeated = decoder.loss(inputs, graph, links.repeat(1, 9), others)
    torch.testing.assert_close(found, repeated)
    none = torch.empty(2, 0, dtype=torch.long)
    apart = decoder.loss(inputs, graph, links, none) + decoder.loss(inputs, graph, none, others)
    torch.testing.assert_close(apart, found, check_dtype=False)
    assert decoder.loss(inputs, graph, none, none) == 0
    assert decoder.loss(inputs, graph) == 0


def test_a_gradient_reaches_every_weight_and_the_edge_stream() -> None:
    torch.manual_seed(0)
    graph = Graph(torch.randn(6, 7), torch.randn(7, 2), TANGLE.ends)
    encoder, decoder = CensNet(7, 2, 8, "NEN", gate="bounded"), PairDecoder(8, 8, 5, diffusion_steps=2)
    nodes, edges = encoder(graph.nodes, graph.edges, graph.incidence)
    edges.retain_grad()
    positives, negatives = torch.tensor([[0, 3], [1, 4]]), torch.tensor([[0, 1], [4, 5]])
    decoder.loss(decoder(nodes, edges, graph), graph, positives, negatives).backward()
    assert edges.grad is not None
    assert float(edges.grad.abs().sum()) > 0
    for name, parameter in [*decoder.named_parameters(), *encoder.layers[1].named_parameters()]:
        assert parameter.grad is not None, name
        assert float(parameter.grad.abs().sum()) > 0, name


def test_without_node_features_their_weight_is_0_and_stays_so() -> None:
    decoder, nodes, edges, graph = make(TANGLE, features=False)
    assert decoder(nodes, edges, graph).features is None
    decoder.reset_parameters()
    assert decoder.feature_weight == 0
    assert not decoder.feature_weight.requires_grad
    assert repr(decoder) == "PairDecoder(4, 3 -> 5, features=False)"


def test_a_diffusion_embedding_is_not_read_unless_set() -> None:
    decoder, nodes, edges, graph = make(TANGLE)
    assert decoder(nodes, edges, graph).diffusion is None
    decoder.reset_parameters()
    assert decoder.diffusion_weight == 0
    assert not decoder.diffusion_weight.requires_grad
    assert repr(PairDecoder(4, 3, 5, diffusion_steps=2)) == "PairDecoder(4, 3 -> 5, diffusion_steps=2)"
    with pytest.raises(ValueError, match="diffusion_steps is -1"):
        PairDecoder(4, 3, diffusion_steps=-1)


# -- size --------------------------------------------------------------------------------------------------------------


def test_many_pairs_are_scored_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder, nodes, edges, graph = make(TANGLE)
    inputs, pairs = decoder(nodes, edges, graph), all_pairs(6)
    expected = decoder.score(inputs, pairs).detach()
    monkeypatch.setattr(module, "BLOCK", 4)
    with torch.no_grad():
        torch.testing.assert_close(decoder.score(inputs, pairs), expected, rtol=1e-12, atol=1e-12)


@given(seed=st.integers(0, 2**16), density=st.sampled_from([0.0, 0.2, 1.0]))
def test_products_of_sparse_rows_are_those_of_dense_ones(seed: int, density: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = rows(5, 6, seed) * (torch.rand(5, 6, generator=generator) < density)
    first, second = torch.randint(5, (2, 9), generator=generator)
    expected = (x[first] * x[second]).sum(1)
    torch.testing.assert_close(row_products(x.to_sparse_csr(), first, second), expected)
    unit = unit_rows(x.to_sparse_csr()).to_dense()
    torch.testing.assert_close(unit, F.normalize(x, dim=1))


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_unit_rows_are_cached_no_longer_than_the_features(layout: str) -> None:
    features = rows(5, 6) if layout == "dense" else rows(5, 6).to_sparse_csr()
    assert unit_rows(features) is unit_rows(features)
    alive = weakref.ref(features)
    del features
    gc.collect()
    assert alive() is None


def test_pairs_that_are_none_are_refused() -> None:
    decoder, nodes, edges, graph = make(TANGLE)
    inputs: PairInputs = decoder(nodes, edges, graph)
    with pytest.raises(ValueError, match=r"^pairs has shape \(3, 1\), expected \(2, \*\)"):
        decoder.score(inputs, torch.zeros(3, 1, dtype=torch.long))
    with pytest.raises(ValueError, match=r"^pairs"):
        decoder.score(inputs, torch.tensor([[6], [0]]))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("features", "edges", "diffusion_steps"), [(True, True, 0), (False, True, 2), (True, False, 0)]
)
def test_all_pairs_of_some_nodes_are_scored_as_pair_by_pair(sparse, features, edges, diffusion_steps):
    decoder, nodes, embedded, graph = make(TANGLE, features=features, diffusion_steps=diffusion_steps)
    decoder.edges = edges
    graph = Graph(graph.nodes.relu().to_sparse_csr() if sparse else graph.nodes, graph.edges, graph.ends)
    inputs = decoder(nodes, embedded, graph)
    for some, start in (
        (torch.tensor([2]), 0),
        (torch.tensor([3, 5, 4]), 2),
        (torch.arange(0), 1),
        (torch.tensor([1]), 6),
    ):
        found = decoder.score_all_pairs(inputs, some, start)
        pairs = torch.cartesian_prod(some, torch.arange(start, 6)).t()
        torch.testing.assert_close(found, decoder.score(inputs, pairs).detach().view(len(some), 6 - start))
        assert not found.requires_grad


def test_products_with_all_of_sparse_rows_are_those_of_dense_ones():
    x = rows(8, 5).relu()
    x[3] = 0
    for some in (torch.tensor([3, 0, 0, 7]), torch.arange(0)):
        expected = x[some] @ x[2:].t()
        torch.testing.assert_close(products_with_all(x, some, 2), expected)
        torch.testing.assert_close(products_with_all(x.to_sparse_csr(), some, 2), expected)
