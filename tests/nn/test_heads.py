"""Heads, against loops over the graphs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Sample, assert_near, graphs
from torch import Tensor, nn

from censnet.nn import GraphHead, RowHead
from censnet.nn.norms import Norm
from censnet.nn.pooling import Readout
from censnet.ops import Incidence
from censnet.ops.graph import Graph

POOLS = ("mean", "sum", "attention")
THREE = Incidence(  # a triangle with a parallel edge and a loop, a lone node, a graph without nodes, a pair
    torch.tensor([[0, 1, 2, 0, 2, 4], [1, 2, 0, 1, 2, 5]]),
    num_nodes=6,
    owner=torch.tensor([0, 0, 0, 1, 3, 3]),
    num_graphs=4,
)


def of(incidence: Incidence, graph_features: Tensor | None = None) -> Graph:
    """A graph of this incidence; heads read embeddings, not its features."""
    nodes, edges = torch.ones(incidence.num_nodes, 1), torch.ones(incidence.num_edges, 1)
    return Graph(nodes, edges, incidence.ends, incidence.owner, incidence.num_graphs, graph_features)


BATCH = of(THREE)


def by_loops(pool: str, rows: np.ndarray, owner: np.ndarray, num_graphs: int, readout: Readout) -> np.ndarray:
    out = np.zeros((num_graphs, rows.shape[1]))
    for graph in range(num_graphs):
        mine = rows[owner == graph]
        if len(mine) == 0:
            continue
        if pool == "attention":
            score = mine @ readout.score.weight.detach().numpy()[0] + readout.score.bias.item()
            share = np.exp(score - score.max())
            out[graph] = share / share.sum() @ mine
        else:
            out[graph] = mine.sum(0) if pool == "sum" else mine.mean(0)
    return out


def owners(incidence: Incidence) -> dict[str, np.ndarray]:
    node = np.zeros(incidence.num_nodes, dtype=int) if incidence.owner is None else incidence.owner.numpy()
    return {"node": node, "edge": node[incidence.ends[0].numpy()]}


@pytest.mark.slow
@pytest.mark.parametrize("side", ["node", "edge"])
@pytest.mark.parametrize("pool", POOLS)
@given(sample=graphs(), seed=st.integers(0, 2**16))
@settings(max_examples=30)
def test_pools_are_loops_over_the_graphs(pool: str, side: str, sample: Sample, seed: int) -> None:
    torch.manual_seed(seed)
    rows = 3 * (sample.nodes if side == "node" else sample.edges)
    readout = Readout(rows.shape[1], pool, side).double()
    incidence = sample.incidence
    expected = by_loops(pool, rows.numpy(), owners(incidence)[side], incidence.num_graphs, readout)
    assert_near(readout(rows, incidence).detach(), torch.from_numpy(expected), 1e-12)


@pytest.mark.parametrize("side", ["node", "edge"])
@pytest.mark.parametrize("pool", POOLS)
def test_gradients_pass_gradcheck(pool: str, side: str) -> None:
    torch.manual_seed(0)
    readout = Readout(2, pool, side).double()
    names = [name for name, _ in readout.named_parameters()]
    rows = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    for incidence in (THREE, Incidence(THREE.ends, 6)):

        def whole(rows: Tensor, *parameters: Tensor, incidence: Incidence = incidence) -> Tensor:
            values = dict(zip(names, parameters, strict=True))
            return torch.func.functional_call(readout, values, (rows, incidence))

        assert torch.autograd.gradcheck(whole, (rows, *readout.parameters()))


def test_attention_with_large_scores_is_finite_and_picks_the_largest() -> None:
    readout = Readout(1, "attention", "node")
    with torch.no_grad():
        readout.score.weight.fill_(1e4)
    rows = torch.tensor([[1.0], [2.0], [3.0], [-7.0], [-2.0], [-1.0]], requires_grad=True)
    out = readout(rows, THREE)
    torch.testing.assert_close(out.detach(), torch.tensor([[3.0], [-7.0], [0.0], [-1.0]]))
    out.sum().backward()
    assert rows.grad.isfinite().all()


@pytest.mark.parametrize("pool", POOLS)
def test_a_graph_without_edges_gets_zeros(pool: str) -> None:
    alone = Incidence(torch.empty(2, 0, dtype=torch.int64), 2)
    edges = torch.empty(0, 3, requires_grad=True)
    assert Readout(3, pool, "edge")(edges, alone).equal(torch.zeros(1, 3))
    out = Readout(3, pool, "edge")(torch.ones(6, 3), THREE)
    assert out[1:3].equal(torch.zeros(2, 3))
    apart = Incidence(torch.empty(2, 0, dtype=torch.int64), 2, torch.tensor([0, 1]), 2)
    out = Readout(3, pool, "edge")(edges, apart)
    assert out.equal(torch.zeros(2, 3))
    out.sum().backward()


@pytest.mark.parametrize("pool", [*POOLS, ("sum", "attention", "mean")])
@pytest.mark.parametrize("over", ["nodes", "edges", "both"])
def test_several_pools_are_concatenated(pool: str | tuple[str, ...], over: str) -> None:
    torch.manual_seed(1)
    head = GraphHead(3, 2, 5, pool=pool, pool_from=over, hidden_widths=(4,)).double()
    rows = {"node": torch.randn(6, 3, dtype=torch.float64), "edge": torch.randn(6, 2, dtype=torch.float64)}
    pools = (pool,) if isinstance(pool, str) else pool
    sides = {"nodes": ["node"], "edges": ["edge"], "both": ["node", "edge"]}[over]
    parts = [
        by_loops(how, rows[side].numpy(), owners(THREE)[side], 4, readout)
        for (side, how), readout in zip(product(sides, pools), head.readouts, strict=True)
    ]
    expected = torch.from_numpy(np.concatenate(parts, axis=1))
    torch.testing.assert_close(head.embed(rows["node"], rows["edge"], BATCH), expected)
    first, _, _, last = head.mlp
    answer = (expected @ first.weight.t() + first.bias).clamp(min=0) @ last.weight.t() + last.bias
    torch.testing.assert_close(head(rows["node"], rows["edge"], BATCH), answer)
    head(rows["node"], rows["edge"], BATCH).sum().backward()
    assert all(parameter.grad is not None for parameter in head.parameters())


@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_a_norm_normalizes_means_and_leaves_sums_and_graph_features(norm: Norm) -> None:
    torch.manual_seed(1)
    head = GraphHead(3, 2, 4, pool=("mean", "sum"), norm=norm, graph_width=2)
    nodes, edges, known = 100 * torch.randn(6, 3), torch.randn(6, 2), torch.randn(THREE.num_graphs, 2)
    mean, total = (Readout(3, pool, "node")(nodes, THREE) for pool in ("mean", "sum"))
    axis = {"batch": 0, "layer": 1}[norm]
    even = (mean - mean.mean(axis, keepdim=True)) / (mean.var(axis, correction=0, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(head.embed(nodes, edges, BATCH), torch.cat([even, total], dim=1), rtol=1e-4, atol=1e-4)
    expected = torch.cat([even, total, known], dim=1) @ head.mlp[0].weight.t() + head.mlp[0].bias
    torch.testing.assert_close(head.train()(nodes, edges, of(THREE, known)), expected, rtol=1e-4, atol=1e-3)


def test_one_channel_has_no_norm_that_would_erase_it() -> None:
    nodes, edges = torch.randn(6, 3), torch.randn(6, 1)
    plain, normed = (
        GraphHead(3, 1, 4, pool_from="both", norm=norm).embed(nodes, edges, BATCH) for norm in (None, "layer")
    )
    assert torch.equal(plain[:, 3], normed[:, 3])
    assert not torch.allclose(plain[:, :3], normed[:, :3])


def test_a_norm_over_a_batch_takes_a_graph_alone() -> None:
    head = GraphHead(3, 2, 4, pool="mean", norm="batch")
    alone = of(Incidence(THREE.ends[:, :5], 3))
    nodes, edges = torch.randn(3, 3), torch.randn(5, 2)
    torch.testing.assert_close(head(nodes, edges, alone), head.eval()(nodes, edges, alone))


def test_a_sum_is_in_units_of_an_average_graph_and_others_are_as_they_were() -> None:
    nodes, edges = torch.randn(6, 3), torch.randn(6, 2)
    for pool in POOLS:
        torch.manual_seed(1)
        head = GraphHead(3, 2, 4, pool=pool, pool_from="both")
        before = head.embed(nodes, edges, BATCH)
        head.set_reference_size(nodes=2.5, edges=0.5)
        units = torch.tensor([2.5, 2.5, 2.5, 1.0, 1.0] if pool == "sum" else [1.0] * 5)  # less than one is none
        torch.testing.assert_close(head.embed(nodes, edges, BATCH), before / units)
        again = GraphHead(3, 2, 4, pool=pool, pool_from="both")
        again.load_state_dict(head.state_dict())
        assert torch.equal(again.embed(nodes, edges, BATCH), head.embed(nodes, edges, BATCH))


def test_a_graph_alone_is_as_in_a_batch() -> None:
    torch.manual_seed(2)
    head = GraphHead(3, 2, 1, pool=POOLS, pool_from="both").double()
    nodes, edges = torch.randn(6, 3, dtype=torch.float64), torch.randn(6, 2, dtype=torch.float64)
    batch = head(nodes, edges, BATCH)
    alone = head(nodes[:3], edges[:5], of(Incidence(THREE.ends[:, :5], 3)))
    torch.testing.assert_close(batch[:1], alone)


# -- nodes and edges --------------------------------------------------------------------------------------------------


def test_a_row_head_without_hidden_layers_is_linear() -> None:
    head, nodes = RowHead("node", 3, 2, 2), torch.randn(6, 3)
    out = head(nodes, torch.ones(6, 2), BATCH)
    torch.testing.assert_close(out, nodes @ head.mlp[0].weight.t() + head.mlp[0].bias)


def test_hidden_layers_have_relu_and_dropout_between_them() -> None:
    head = RowHead("node", 3, 2, 2, hidden_widths=(8, 4), dropout=0.25)
    assert [type(part).__name__ for part in head.mlp] == 2 * ["Linear", "ReLU", "Dropout"] + ["Linear"]
    assert [part.out_features for part in head.mlp if isinstance(part, nn.Linear)] == [8, 4, 2]
    rows = torch.randn(6, 3), torch.ones(6, 2), BATCH
    assert not head(*rows).equal(head(*rows))
    head.eval()
    assert head(*rows).equal(head(*rows))


@pytest.mark.parametrize(
    "make",
    [
        lambda: RowHead("node", 3, 2, 2, hidden_widths=(4,)),
        lambda: GraphHead(3, 2, 1, pool=POOLS, pool_from="both", hidden_widths=(4,)),
    ],
)
def test_reset_parameters_gives_a_fresh_head(make: Callable[[], nn.Module]) -> None:
    torch.manual_seed(4)
    fresh = make().state_dict()
    torch.manual_seed(5)
    other = make()
    drawn = {name: value for name, value in fresh.items() if not name.endswith("reference_size")}
    assert not any(other.state_dict()[name].equal(value) for name, value in drawn.items())
    torch.manual_seed(4)
    other.reset_parameters()
    assert all(other.state_dict()[name].equal(value) for name, value in fresh.items())


def test_graph_features_are_concatenated_to_the_pooled_vector() -> None:
    head, nodes, edges = GraphHead(3, 2, 4, pool_from="both", graph_width=2), torch.randn(6, 3), torch.randn(6, 2)
    graphs = torch.randn(THREE.num_graphs, 2)
    line, pooled = head.mlp[0], head.embed(nodes, edges, BATCH)
    expected = pooled @ line.weight[:, :5].t() + graphs @ line.weight[:, 5:].t() + line.bias
    torch.testing.assert_close(head(nodes, edges, of(THREE, graphs)), expected)


# -- the door ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: GraphHead(3, 2, 1, pool="max"), r"^pool is 'max', expected 'mean', 'sum' or 'attention'$"),
        (lambda: GraphHead(3, 2, 1, pool="sum", norm="group"), r"^norm is 'group', expected 'batch', 'layer' or None$"),
        (lambda: GraphHead(3, 2, 1, pool=()), r"^pool is empty, expected 'mean', 'sum', 'attention' or several"),
        (
            lambda: GraphHead(3, 2, 1, pool_from="graphs"),
            r"^pool_from is 'graphs', expected 'nodes', 'edges' or 'both'$",
        ),
        (lambda: RowHead("node", 3, 2, 1, (2,), dropout=2.0), r"^p is 2.0, expected a probability from 0 to 1$"),
        (
            lambda: RowHead("node", 3, 2, 1)(torch.ones(6, 2), torch.ones(6, 2), BATCH),
            r"^nodes has shape \(6, 2\), expected \(\*, 3\): \(n, width\)$",
        ),
        (
            lambda: GraphHead(3, 2, 1)(torch.ones(5, 3), torch.ones(6, 2), BATCH),
            r"^nodes has shape \(5, 3\), expected \(6, 3\): \(N, node_width\)$",
        ),
        (
            lambda: GraphHead(3, 2, 1)(torch.ones(6, 3), torch.ones(6, 3), BATCH),
            r"^edges has shape \(6, 3\), expected \(6, 2\): \(E, edge_width\)$",
        ),
        (
            lambda: GraphHead(3, 2, 1, graph_width=5)(torch.ones(6, 3), torch.ones(6, 2), BATCH),
            r"^graph_features is None, expected 5 features of each graph: \(G, graph_width\)$",
        ),
        (
            lambda: GraphHead(3, 2, 1, graph_width=5)(torch.ones(6, 3), torch.ones(6, 2), of(THREE, torch.ones(4, 4))),
            r"^graph_features has shape \(4, 4\), expected \(4, 5\): \(G, graph_width\)$",
        ),
    ],
)
def test_wrong_arguments_are_named(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wrong()


def test_the_repr_of_a_readout_names_pool_and_side() -> None:
    assert repr(Readout(3, "mean", "edge")) == "Readout(mean over edges)"
