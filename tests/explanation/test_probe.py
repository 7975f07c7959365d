from __future__ import annotations

import pytest
import torch
from torch import Tensor

from censnet.explanation.gradients import integrated_gradients
from censnet.explanation.parts import Columns, explain_parts, fidelity
from censnet.explanation.probe import Neighborhood, Probe, neighborhood, tile
from censnet.nn import CensNet, Model, RowHead
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet


def first(outputs: Tensor) -> Tensor:
    return outputs[:, 0]


def make_graph(seed: int = 0, nodes: int = 14, edges: int = 22, directed: bool = False) -> Graph:
    torch.manual_seed(seed)
    source = torch.randint(0, nodes, (edges,))
    target = (source + torch.randint(1, nodes, (edges,))) % nodes
    return Graph(torch.randn(nodes, 3), torch.randn(edges, 2), torch.stack([source, target]), directed=directed)


def make_model(level: str = "node", layers: str = "NEN", **options: object) -> Model:
    torch.manual_seed(1)
    encoder = CensNet(3, 2, hidden=8, layers=layers, gate="bounded", self_weight="learned", **options)
    head = RowHead(level, encoder.out_node_width, encoder.out_edge_width, out_width=1)
    model = Model(encoder, {level: head}).eval()
    for parameter in model.parameters():  # gates that differ
        torch.nn.init.normal_(parameter, std=0.4)
    return model


def make_probe(graph: Graph | GraphSet, model: Model, level: str, row: int) -> Probe:
    return Probe([model], neighborhood(graph, level, row, model), level, first)


@pytest.mark.parametrize("level", ["node", "edge"])
@pytest.mark.parametrize("directed", [False, True])
def test_the_answer_on_the_receptive_field_is_that_on_the_whole_graph(level, directed):
    graph, model = make_graph(directed=directed), make_model(level, "NE", directed=directed)
    outputs = model(graph).by_level[level][:, 0]
    for row in (0, 7):
        probe = make_probe(graph, model, level, row)
        assert probe.whole() == pytest.approx(outputs[row].item(), abs=1e-5)


def test_without_an_edge_is_the_whole_graph_without_it_and_with_its_degrees():
    graph, model = make_graph(), make_model()
    probe = make_probe(graph, model, "node", 3)
    edge = 2
    keep = torch.ones(1, probe.place.graph.num_edges, dtype=torch.bool)
    keep[0, edge] = False
    every = torch.ones(1, graph.num_edges, dtype=torch.bool)
    every[0, probe.place.edges[edge]] = False
    expected = model(tile(graph, 1, every)).by_level["node"][3, 0]
    torch.testing.assert_close(probe.without(keep)[0], expected, atol=1e-5, rtol=1e-5)
    assert expected.item() != pytest.approx(probe.whole())


def test_directed_layers_take_means_over_the_edges_that_are_left():
    graph, model = make_graph(directed=True), make_model("edge", "NE", directed=True)
    probe = make_probe(graph, model, "edge", 5)
    for edge in range(6):
        if edge == probe.place.seed:
            continue
        keep = torch.ones(1, probe.place.graph.num_edges, dtype=torch.bool)
        keep[0, edge] = False
        left = torch.ones(graph.num_edges, dtype=torch.bool)
        left[probe.place.edges[edge]] = False
        fewer = Graph(graph.nodes, graph.edges[left], graph.ends[:, left], directed=True)  # counted anew
        expected = model(fewer).by_level["edge"][int(left[:5].sum()), 0]
        torch.testing.assert_close(probe.without(keep)[0], expected, atol=1e-5, rtol=1e-5)


def test_in_one_linear_layer_a_closed_gate_takes_away_the_message_of_the_edge():
    """y_i = (sum of w_e x_j / sqrt(D_i D_j)) W: the term of the edge, and nothing else."""
    graph = make_graph()
    torch.manual_seed(0)
    encoder = CensNet(3, 2, hidden=1, layers="N", out_width=1, gate="linear", self_weight="one", bias=False)
    model = Model(encoder, {"node": _Identity()}).eval()
    layer = encoder.layers[0]
    probe = make_probe(graph, model, "node", 4)
    place = probe.place
    degree = place.graph.incidence.node_degree.float()
    gates = layer.gates(place.graph.edges)[:, 0]
    closed = probe.with_gates_closed(torch.arange(place.graph.num_edges))
    mixed = (place.graph.nodes @ layer.weight)[:, 0]
    for edge in range(place.graph.num_edges):
        u, v = place.graph.ends[:, edge].tolist()
        if place.seed not in (u, v):
            assert float(closed[edge]) == pytest.approx(probe.whole(), abs=1e-5)
            continue
        other = v if u == place.seed else u
        term = gates[edge] * (
            mixed[other] / (degree[place.seed] * degree[other]).sqrt() - mixed[place.seed] / degree[place.seed]
        )
        # with a diagonal of 1 the gate is in the message and, negatively, in no other term of the node
        message = gates[edge] * mixed[other] / (degree[place.seed] * degree[other]).sqrt()
        assert probe.whole() - float(closed[edge]) == pytest.approx(float(message), abs=1e-4) or (
            probe.whole() - float(closed[edge]) == pytest.approx(float(term), abs=1e-4)
        )


class _Identity(torch.nn.Module):
    """The outputs are the embedded nodes."""

    level, reads_odd, layer_order, members = "node", False, "", 1

    def forward(self, nodes: Tensor, edges: Tensor, graph: Graph) -> Tensor:
        return nodes

    def clip(self, outputs: Tensor) -> Tensor:
        return outputs

    def reset_parameters(self) -> None: ...


def test_integrated_gradients_add_up_and_are_exact_where_the_answer_is_linear():
    graph, model = make_graph(), make_model()
    probe = make_probe(graph, model, "node", 3)
    found, place = integrated_gradients(probe, 512), probe.place
    node, edge = place.baseline
    flat = node.expand_as(place.graph.nodes)[None], edge.expand_as(place.graph.edges)[None]
    start = float(probe.of_features(*flat)[0].detach())
    total = float(found["node"].sum() + found["edge"].sum())
    assert total == pytest.approx(probe.whole() - start, abs=2e-3)

    torch.manual_seed(0)
    encoder = CensNet(3, 2, hidden=1, layers="N", out_width=1, gate="bounded", self_weight="learned")
    linear = Model(encoder, {"node": _Identity()}).eval()  # bounded gates start at 1: linear in the nodes
    probe = make_probe(graph, linear, "node", 3)
    exact = integrated_gradients(probe)
    count = probe.place.graph.num_nodes
    hidden = probe.without_columns([("node", torch.tensor([node]), torch.arange(3)) for node in range(count)])
    torch.testing.assert_close(exact["node"].sum(1), probe.whole() - hidden, atol=1e-4, rtol=1e-4)


def test_parts_of_a_graph_of_a_set_are_its_own():
    graphs = GraphSet.pack([make_graph(0, 6, 8), make_graph(1, 5, 7)])
    model = make_model("edge")
    place = neighborhood(graphs, "edge", 10, model)
    assert place.seed == 2
    assert place.edges.tolist() == list(range(8, 15))
    expected = model(graphs.whole).by_level["edge"][10, 0]
    assert make_probe(graphs, model, "edge", 10).whole() == pytest.approx(float(expected), abs=1e-5)


def test_the_row_itself_is_no_part_and_parts_come_by_size():
    probe = make_probe(make_graph(), make_model("edge"), "edge", 5)
    parts = explain_parts(probe, [Columns("x", "node", [0, 1]), Columns("y", "edge", [1])])
    edges = [part for part in parts if part.kind == "edge"]
    assert probe.place.seed not in [part.index for part in edges]
    sizes = [abs(part.change) for part in edges]
    assert sizes == sorted(sizes, reverse=True)
    assert {(part.index, part.where) for part in parts if part.kind == "column"} == {
        (0, "around"),
        (1, "own"),
        (1, "around"),
    }
    found = fidelity(probe, parts, "edge")
    assert found is not None
    assert 0 <= found.beats <= 1
    assert found.change > found.random * 0.5


def test_copies_have_the_degrees_of_the_neighborhood():
    graph = make_graph()
    copies = tile(graph, 3)
    assert copies.num_graphs == 3
    assert copies.incidence.node_degree.tolist() == graph.incidence.node_degree.tolist() * 3
    model = make_model()
    expected = model(graph).by_level["node"]
    torch.testing.assert_close(model(copies).by_level["node"], expected.repeat(3, 1), atol=1e-5, rtol=1e-5)
    assert isinstance(neighborhood(graph, "node", 0, model), Neighborhood)
