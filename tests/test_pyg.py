"""CensNetConv is our layers, in PyTorch Geometric's clothes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.loader import DataLoader
from torch_geometric.nn import Sequential, global_mean_pool
from torch_geometric.utils import to_undirected

from censnet import EdgeLayer, NodeLayer
from censnet.nn.directed import DirectedEdgeLayer, DirectedNodeLayer
from censnet.ops import Incidence
from censnet.pyg import CensNetConv, each_edge_once


def doubled(ends: Tensor, edges: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """The edges in both directions, loops once, in random order."""
    loop = ends[0] == ends[1]
    edge_index = torch.cat([ends, ends.flip(0)[:, ~loop]], dim=1)
    edge_attr = torch.cat([edges, edges[~loop]])
    order = torch.randperm(edge_index.shape[1], generator=torch.Generator().manual_seed(seed))
    return edge_index[:, order], edge_attr[order]


def sample(seed: int, num_nodes: int = 9, num_edges: int = 16) -> tuple[Tensor, Tensor, Tensor]:
    """A simple graph with loops: in a multigraph which copy pairs with which is a convention, tested by itself."""
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.combinations(torch.arange(num_nodes), with_replacement=True).t()
    ends = pairs[:, torch.randperm(pairs.shape[1], generator=generator)[:num_edges]]
    nodes = torch.randn(num_nodes, 5, generator=generator)
    return nodes, torch.randn(num_edges, 3, generator=generator), ends


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "options",
    [{}, {"variant": "released"}, {"heads": 2, "gate": "bounded", "self_weight": "learned"}, {"kernel": "pagerank"}],
)
def test_it_equals_our_layers_on_the_same_graph(options: dict[str, Any], seed: int) -> None:
    nodes, edges, ends = sample(seed)
    edge_index, edge_attr = doubled(ends, edges, seed)
    nodes, edges, edge_attr = nodes.double(), edges.double(), edge_attr.double()
    conv = CensNetConv(5, 8, edge_dim=3, edge_out_channels=4, act="relu", **options).double()
    for parameter in conv.parameters():
        nn.init.normal_(parameter)
    x, out_attr = conv(nodes, edge_index, edge_attr)

    node_layer, edge_layer = NodeLayer(5, 3, 8, **options).double(), EdgeLayer(8, 3, 4, **options).double()
    assert conv.node_layer is not None
    assert conv.edge_layer is not None
    node_layer.load_state_dict(conv.node_layer.state_dict())
    edge_layer.load_state_dict(conv.edge_layer.state_dict())
    incidence = Incidence(ends, len(nodes))
    our_nodes = node_layer(nodes, edges, incidence).relu()
    our_edges = edge_layer(our_nodes, edges, incidence).relu()
    torch.testing.assert_close(x, our_nodes)
    number = {tuple(sorted(pair)): e for e, pair in enumerate(ends.t().tolist())}
    for column, pair in enumerate(edge_index.t().tolist()):
        torch.testing.assert_close(out_attr[column], our_edges[number[tuple(sorted(pair))]])


def test_parallel_edges_pair_in_their_order() -> None:
    edge_index = torch.tensor([[0, 0, 1, 1, 2], [1, 1, 0, 0, 2]])
    undirected = each_edge_once(edge_index, 3)
    assert undirected.ends.tolist() == [[0, 0, 2], [1, 1, 2]]
    assert undirected.edge.tolist() == [0, 1, 0, 1, 2]
    assert undirected.copies.tolist() == [[0, 1, 4], [2, 3, 4]]


def test_an_edge_without_its_reverse_is_named() -> None:
    with pytest.raises(ValueError, match=r"edge \(0, 2\) has no reverse.*to_undirected"):
        each_edge_once(torch.tensor([[0, 1, 0], [1, 0, 2]]), 3)
    with pytest.raises(ValueError, match="copies are missing"):
        each_edge_once(torch.tensor([[0, 1, 0], [1, 0, 1]]), 3)


def test_an_end_out_of_range_and_rows_that_do_not_match_are_named() -> None:
    conv = CensNetConv(2, 2, edge_dim=1)
    with pytest.raises(ValueError, match=r"edge_index\[0, 1\] is 7, expected a node from 0 to 2"):
        conv(torch.ones(3, 2), torch.tensor([[0, 7], [7, 0]]), torch.ones(2, 1))
    with pytest.raises(ValueError, match=r"edge_attr has shape \(3, 1\), expected \(2, \*\)"):
        conv(torch.ones(3, 2), torch.tensor([[0, 1], [1, 0]]), torch.ones(3, 1))
    with pytest.raises(ValueError, match="update is 'nodes'"):
        CensNetConv(2, 2, update="nodes")  # type: ignore[arg-type]


def test_widths_are_found_in_the_first_call() -> None:
    nodes, edges, ends = sample(0)
    edge_index, edge_attr = doubled(ends, edges, 0)
    lazy = CensNetConv(-1, 8, self_weight="learned", heads=2)
    assert repr(lazy) == "CensNetConv(-1, 8, edge_dim=-1)"
    lazy.reset_parameters()  # PyG models do so before the first call
    untouched = copy.deepcopy(lazy)
    lazy(nodes, edge_index, edge_attr)
    assert repr(lazy) == "CensNetConv(5, 8, edge_dim=3)"
    assert type(lazy.node_layer) is NodeLayer
    known = CensNetConv(5, 8, edge_dim=3, self_weight="learned", heads=2)
    known.load_state_dict(lazy.state_dict())
    untouched.load_state_dict(lazy.state_dict())  # a lazy module takes the shapes of what it loads
    for other in (known, untouched):
        for ours, theirs in zip(lazy(nodes, edge_index, edge_attr), other(nodes, edge_index, edge_attr), strict=True):
            assert torch.equal(ours, theirs)


def test_one_known_width_is_checked_and_the_other_found() -> None:
    nodes, edges, ends = sample(0)
    edge_index, edge_attr = doubled(ends, edges, 0)
    with pytest.raises((ValueError, RuntimeError)):
        CensNetConv(4, 8)(nodes, edge_index, edge_attr)
    assert CensNetConv(5, 8)(nodes, edge_index, edge_attr)[0].shape == (9, 8)


def test_reset_parameters_starts_afresh() -> None:
    conv = CensNetConv(5, 8, edge_dim=3)
    before = copy.deepcopy(conv.state_dict())
    torch.manual_seed(1)
    conv.reset_parameters()
    once = copy.deepcopy(conv.state_dict())
    torch.manual_seed(1)
    conv.reset_parameters()
    assert all(torch.equal(once[name], value) for name, value in conv.state_dict().items())
    assert not torch.equal(before["node_layer.weight"], once["node_layer.weight"])


@pytest.mark.parametrize(
    ("update", "changed"), [("node", (True, False)), ("edge", (False, True)), ("both", (True, True))]
)
def test_it_updates_the_sides_it_is_set_to(update: Any, changed: tuple[bool, bool]) -> None:
    nodes, edges, ends = sample(3)
    edge_index, edge_attr = doubled(ends, edges, 3)
    out = CensNetConv(5, 8, edge_dim=3, update=update)(nodes, edge_index, edge_attr)
    assert [new.shape[1] == 8 for new in out] == list(changed)
    for new, old, is_changed in zip(out, (nodes, edge_attr), changed, strict=True):
        assert is_changed or torch.equal(new, old)


@pytest.mark.slow
def test_it_works_in_a_sequential_and_learns() -> None:
    nodes, edges, ends = sample(4, num_nodes=20, num_edges=40)
    edge_index, edge_attr = doubled(ends, edges, 4)
    torch.manual_seed(0)
    model = Sequential(
        "x, edge_index, edge_attr",
        [
            (
                CensNetConv(-1, 16, act="relu", gate="bounded", self_weight="learned"),
                "x, edge_index, edge_attr -> x, edge_attr",
            ),
            (CensNetConv(16, 16, act="relu", gate="bounded"), "x, edge_index, edge_attr -> x, edge_attr"),
            (nn.Linear(16, 2), "x -> x"),
        ],
    )
    labels = (nodes[:, 0] > 0).long()
    model(nodes, edge_index, edge_attr)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(nodes, edge_index, edge_attr), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.parametrize("kernel", ["hop", "lanczos"])
def test_a_batch_of_the_data_loader_is_each_graph_alone(kernel: str) -> None:
    data = []
    for seed in range(4):
        nodes, edges, ends = sample(seed, num_nodes=5 + seed, num_edges=6)
        edge_index, edge_attr = doubled(ends, edges, seed)
        data.append(Data(x=nodes, edge_index=edge_index, edge_attr=edge_attr))
    data.append(Data(x=torch.randn(1, 5), edge_index=torch.empty(2, 0, dtype=torch.long), edge_attr=torch.empty(0, 3)))
    conv = CensNetConv(5, 8, edge_dim=3, kernel=kernel)
    batch = next(iter(DataLoader(data, batch_size=5)))
    x, edge_attr = conv(batch.x, batch.edge_index, batch.edge_attr, batch.batch)
    alone = [conv(one.x, one.edge_index, one.edge_attr) for one in data]
    torch.testing.assert_close(x, torch.cat([nodes for nodes, _ in alone]))
    torch.testing.assert_close(edge_attr, torch.cat([edges for _, edges in alone]))
    assert global_mean_pool(x, batch.batch).shape == (5, 8)


def test_a_changed_edge_index_is_not_taken_for_the_old_one() -> None:
    conv = CensNetConv(2, 2, edge_dim=1)
    x, edge_attr = torch.randn(4, 2), torch.ones(4, 1)
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    first = conv(x, edge_index, edge_attr)[0]
    edge_index[edge_index == 2] = 3
    second = conv(x, edge_index, edge_attr)[0]
    assert not torch.equal(first, second)
    assert torch.equal(second, conv(x, edge_index.clone(), edge_attr)[0])


class _Classifier(nn.Module):
    """Node 0 depends on its own component alone; node classification for the explainers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.first = CensNetConv(3, 8, edge_dim=2, act="relu", self_weight="learned")
        self.second = CensNetConv(8, 2, edge_dim=8, update="node", self_weight="learned")

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        x, edge_attr = self.first(x, edge_index, edge_attr)
        return self.second(x, edge_index, edge_attr)[0]


def test_gnn_explainer_finds_the_component_that_matters() -> None:
    torch.manual_seed(0)
    ends = torch.tensor([[0, 1, 3, 4], [1, 2, 4, 5]])  # two paths of three nodes
    edge_index, edge_attr = to_undirected(ends, torch.rand(4, 2) + 0.5)
    explainer = Explainer(
        _Classifier(),
        GNNExplainer(epochs=60),
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    explanation = explainer(torch.randn(6, 3), edge_index, edge_attr=edge_attr, index=0)
    own = (edge_index[0] < 3) & (edge_index[1] < 3)
    assert explanation.edge_mask[own].min() > 0
    assert explanation.edge_mask[~own].max() == 0


def test_an_edge_mask_of_zero_cuts_the_edge_out() -> None:
    nodes, edges, ends = sample(6)
    keep = ends[0] != ends[1]
    ends, edges = ends[:, keep], edges[keep]
    edge_index, edge_attr = doubled(ends, edges, 6)
    conv = CensNetConv(5, 4, edge_dim=3, normalization="row", update="node", gate="bounded", self_weight="learned")
    nn.init.normal_(conv.node_layer.gate_weight)
    conv.explain = True
    conv._edge_mask = torch.zeros(edge_index.shape[1])
    conv._apply_sigmoid = False
    masked = conv(nodes, edge_index, edge_attr)[0]
    torch.testing.assert_close(masked, nodes @ conv.node_layer.root_weight + conv.node_layer.bias)


# -- directed ---------------------------------------------------------------------------------------------------------

FURTHER: list[dict[str, Any]] = [
    {},
    {"heads": 2, "gate": "bounded"},
    {"edge_content": True, "pair_means": True, "bias": False},
]


def arcs(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """A directed multigraph with loops."""
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(7, (2, 20), generator=generator)
    return torch.randn(9, 5, generator=generator), edge_index, torch.randn(20, 3, generator=generator)


@pytest.mark.parametrize("options", FURTHER)
def test_directed_edges_are_those_of_our_layers_column_by_column(options: dict[str, Any]) -> None:
    x, edge_index, edge_attr = arcs(0)
    conv = CensNetConv(5, 8, edge_dim=3, edge_out_channels=4, act="relu", directed=True, **options)
    found = conv(x, edge_index, edge_attr)
    nodes, edges = DirectedNodeLayer(5, 3, 8, **options), DirectedEdgeLayer(8, 3, 4, **options)
    nodes.load_state_dict(conv.node_layer.state_dict())
    edges.load_state_dict(conv.edge_layer.state_dict())
    incidence = Incidence(edge_index, 9)
    our_nodes = nodes(x, edge_attr, incidence).relu()
    assert found[0].equal(our_nodes)
    assert found[1].equal(edges(our_nodes, edge_attr, incidence).relu())


@pytest.mark.parametrize("options", FURTHER)
def test_directed_widths_are_found_in_the_first_call(options: dict[str, Any]) -> None:
    x, edge_index, edge_attr = arcs(1)
    lazy = CensNetConv(-1, 8, directed=True, **options)
    assert repr(lazy) == "CensNetConv(-1, 8, edge_dim=-1, directed=True)"
    lazy.reset_parameters()
    untouched = copy.deepcopy(lazy)
    lazy(x, edge_index, edge_attr)
    assert repr(lazy) == "CensNetConv(5, 8, edge_dim=3, directed=True)"
    assert type(lazy.node_layer) is DirectedNodeLayer
    assert type(lazy.edge_layer) is DirectedEdgeLayer
    known = CensNetConv(5, 8, edge_dim=3, directed=True, **options)
    known.load_state_dict(lazy.state_dict())
    untouched.load_state_dict(lazy.state_dict())
    for other in (known, untouched):
        for ours, theirs in zip(lazy(x, edge_index, edge_attr), other(x, edge_index, edge_attr), strict=True):
            assert torch.equal(ours, theirs)


@pytest.mark.parametrize("directed", [True, False])
def test_a_lazy_layer_reads_the_content_of_edges(directed: bool) -> None:
    x, edge_index, edge_attr = arcs(2)
    if not directed:
        edge_index, edge_attr = torch.cat([edge_index, edge_index.flip(0)], dim=1), edge_attr.repeat(2, 1)
    conv = CensNetConv(-1, 8, edge_content=True, directed=directed, update="node")
    assert conv(x, edge_index, edge_attr)[0].shape == (9, 8)
    content = conv.node_layer.out_content if directed else conv.node_layer.content_weight
    assert content.shape == (3, 8)


def test_one_edge_index_serves_directed_and_undirected_layers() -> None:
    x, edge_index, edge_attr = arcs(3)
    both, attributes = torch.cat([edge_index, edge_index.flip(0)], dim=1), edge_attr.repeat(2, 1)
    undirected, directed = (CensNetConv(5, 4, edge_dim=3, directed=value) for value in (False, True))
    alone = directed(x, both.clone(), attributes), undirected(x, both.clone(), attributes)
    for _ in range(2):
        for conv, expected in ((directed, alone[0]), (undirected, alone[1])):
            assert all(map(torch.equal, conv(x, both, attributes), expected))


def test_a_changed_directed_edge_index_is_not_taken_for_the_old_one() -> None:
    conv, edge_index = CensNetConv(5, 2, edge_dim=3, directed=True), arcs(4)[1]
    x, _, edge_attr = arcs(4)
    first = conv(x, edge_index, edge_attr)[0]
    edge_index[1, 0] = (edge_index[1, 0] + 1) % 9
    second = conv(x, edge_index, edge_attr)[0]
    assert not torch.equal(first, second)
    assert torch.equal(second, conv(x, edge_index.clone(), edge_attr)[0])


def test_a_batch_of_directed_graphs_is_each_alone() -> None:
    conv = CensNetConv(5, 4, edge_dim=3, directed=True, pair_means=True)
    graphs = [Data(x=x, edge_index=ends, edge_attr=z) for x, ends, z in (arcs(seed) for seed in range(3))]
    batch = next(iter(DataLoader(graphs, batch_size=3)))
    x, edge_attr = conv(batch.x, batch.edge_index, batch.edge_attr, batch.batch)
    alone = [conv(graph.x, graph.edge_index, graph.edge_attr) for graph in graphs]
    torch.testing.assert_close(x, torch.cat([nodes for nodes, _ in alone]))
    torch.testing.assert_close(edge_attr, torch.cat([edges for _, edges in alone]))


def test_an_edge_mask_cuts_directed_edges_out_one_by_one() -> None:
    x, edge_index, edge_attr = arcs(5)
    conv = CensNetConv(5, 4, edge_dim=3, update="node", gate="bounded", directed=True, edge_content=True)
    expected = conv(x, edge_index, edge_attr)[0]
    conv.explain, conv._apply_sigmoid = True, False
    conv._edge_mask = torch.ones(20)
    torch.testing.assert_close(conv(x, edge_index, edge_attr)[0], expected)
    conv._edge_mask[0] = 0
    start, end = edge_index[:, 0].tolist()
    moved = (conv(x, edge_index, edge_attr)[0] - expected).abs().amax(1) > 1e-6
    assert set(moved.nonzero().squeeze(1).tolist()) == {start, end}
    conv._edge_mask = torch.zeros(20)
    masked = conv(x, edge_index, edge_attr)[0]
    torch.testing.assert_close(masked, x @ conv.node_layer.root_weight + conv.node_layer.bias)


def test_gnn_explainer_masks_directed_edges() -> None:
    torch.manual_seed(0)
    conv = CensNetConv(3, 2, edge_dim=2, update="node", directed=True)

    class Nodes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = conv

        def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
            return self.conv(x, edge_index, edge_attr)[0]

    explainer = Explainer(
        Nodes(),
        GNNExplainer(epochs=20),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    edge_index = torch.tensor([[0, 2, 3], [1, 0, 4]])
    mask = explainer(torch.randn(5, 3), edge_index, edge_attr=torch.rand(3, 2) + 0.5, index=0).edge_mask
    assert mask[:2].min() > 0
    assert mask[2] == 0


def test_means_over_pairs_need_a_direction() -> None:
    with pytest.raises(ValueError, match="pair_means is set without directed, expected both"):
        CensNetConv(5, 4, edge_dim=3, pair_means=True)
