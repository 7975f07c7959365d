"""An encoder that is compiled or exported gives the numbers and gradients that it gives by itself."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import cache

import pytest
import torch
from strategies import assert_near
from torch import Tensor
from torch.export import ExportedProgram

from censnet.nn import CensNet, CensNetVAE, Lanczos
from censnet.nn.export import FromEnds, export
from censnet.ops import Incidence
from censnet.ops.graph import Graph

RECIPES: dict[str, dict[str, object]] = {
    "paper": {},
    "released": {"variant": "released"},
    "rezero": {"residual": "rezero", "self_weight": "one_plus_learned", "gate": "bounded"},
    "strong": {"norm": "layer", "residual": True, "gate": "bounded", "self_weight": "learned", "heads": 2},
    "row": {"self_weight": "one", "normalization": "row", "norm": "batch", "kernel": "chebyshev"},
    "directed": {"directed": True, "edge_content": True, "pair_means": True, "gate": "bounded", "heads": 2},
}


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def tangle(num_nodes: int = 9, num_edges: int = 21, seed: int = 0) -> Graph:
    """A multigraph with parallel edges, loops and an isolated node, in float64."""
    generator = torch.Generator().manual_seed(seed)
    ends = torch.randint(num_nodes - 1, (2, num_edges), generator=generator)
    ends[:, 0], ends[:, 1], ends[:, 2] = torch.tensor([2, 2]), torch.tensor([0, 1]), torch.tensor([1, 0])
    return Graph(
        torch.randn(num_nodes, 4, generator=generator, dtype=torch.float64),
        torch.randn(num_edges, 2, generator=generator, dtype=torch.float64),
        ends,
    )


def make(recipe: str, seed: int = 0) -> CensNet:
    model = CensNet(4, 2, 6, "NE", out_width=4, **RECIPES[recipe]).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator))
    return model.eval()


def with_gradients(model: torch.nn.Module, of: CensNet, graph: Graph) -> list[Tensor]:
    """Both answers, and the gradients of the nodes, the edges and each parameter."""
    nodes, edges = graph.nodes.clone().requires_grad_(), graph.edges.clone().requires_grad_()
    answers = model(nodes, edges, graph.ends)
    generator = torch.Generator().manual_seed(1)
    grads = [torch.randn(answer.shape, generator=generator, dtype=torch.float64) for answer in answers]
    inputs = [nodes, edges, *of.parameters()]
    found = torch.autograd.grad(answers, inputs, grads, allow_unused=True, materialize_grads=True)
    return [*(answer.detach() for answer in answers), *found]


def check_same(model: torch.nn.Module, of: CensNet, graph: Graph) -> None:
    expected = with_gradients(FromEnds(of), of, graph)
    for mine, theirs in zip(with_gradients(model, of, graph), expected, strict=True):
        assert_near(mine, theirs, 1e-10)


@pytest.mark.parametrize("recipe", RECIPES)
def test_from_ends_is_the_model(recipe: str) -> None:
    model, graph = make(recipe), tangle()
    found = FromEnds(model)(graph.nodes, graph.edges, graph.ends)
    expected = model(graph.nodes, graph.edges, graph.incidence)
    assert all(mine.equal(theirs) for mine, theirs in zip(found, expected, strict=True))


# -- torch.compile ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_what_dynamo_traces_in_one_piece_is_the_same(recipe: str) -> None:
    model = make(recipe)
    check_same(torch.compile(FromEnds(model), backend="eager", fullgraph=True), model, tangle())


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["paper", "released", "directed"])
def test_what_aot_autograd_traces_is_the_same_for_graphs_of_any_size(recipe: str) -> None:
    model = make(recipe)
    compiled = torch.compile(FromEnds(model), backend="aot_eager", fullgraph=True, dynamic=True)
    check_same(compiled, model, tangle())
    check_same(compiled, model, tangle(13, 30, seed=1))


@pytest.mark.slow
def test_a_lanczos_kernel_is_traced() -> None:
    model = CensNet(4, 2, 4, "N", kernel=Lanczos(3, (1, 2, 5)), activation="none").double()
    check_same(torch.compile(FromEnds(model), backend="eager", fullgraph=True), model, tangle())


def test_dropout_is_traced_and_drops() -> None:
    model, graph = CensNet(4, 2, 50, "N", dropout=0.5, activation="none").double(), tangle()
    nodes, _ = torch.compile(FromEnds(model), backend="eager", fullgraph=True)(graph.nodes, graph.edges, graph.ends)
    assert 0.3 < float((nodes[:-1] == 0).double().mean()) < 0.7  # the last node is isolated, and has 0


@pytest.mark.slow
def test_a_given_incidence_can_be_compiled_with() -> None:
    """Without the wrapper: the incidence is an argument, whose kept tables are there already or not."""
    model, graph = make("paper"), tangle()
    expected = model(graph.nodes, graph.edges, graph.incidence)
    for incidence in (graph.incidence, Incidence(graph.ends, graph.num_nodes)):
        found = torch.compile(model, backend="eager")(graph.nodes, graph.edges, incidence)
        for mine, theirs in zip(found, expected, strict=True):
            assert_near(mine.detach(), theirs.detach(), 1e-10)


def test_the_encoder_of_a_vae_is_traced() -> None:
    model, graph = CensNetVAE(4, 2, 6, 3).double(), tangle()
    found = torch.compile(FromEnds(model), backend="eager", fullgraph=True)(graph.nodes, graph.edges, graph.ends)
    expected = model(graph.nodes, graph.edges, graph.incidence)
    torch.testing.assert_close(found.mean, expected.mean)
    torch.testing.assert_close(found.log_std, expected.log_std)


# -- torch.export -----------------------------------------------------------------------------------------------------


@cache
def exported(recipe: str) -> ExportedProgram:
    return export(make(recipe), tangle())


def check_program(program: Callable[..., tuple[Tensor, Tensor]], model: CensNet, graph: Graph) -> None:
    found = program(graph.nodes, graph.edges, graph.ends)
    expected = model(graph.nodes, graph.edges, graph.incidence)
    for mine, theirs in zip(found, expected, strict=True):
        assert_near(mine.detach(), theirs.detach(), 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["paper", "released", "directed"])
def test_an_exported_program_is_the_same_for_graphs_of_any_size(recipe: str) -> None:
    program, model = exported(recipe).module(), make(recipe)
    for graph in (tangle(), tangle(40, 100, seed=2), tangle(4, 3, seed=3)):
        check_program(program, model, graph)
    for ends in (torch.empty(2, 0, dtype=torch.int64), torch.tensor([[0], [1]])):
        check_program(program, model, Graph(tangle().nodes, tangle().edges[: ends.shape[1]], ends))


def test_an_exported_program_can_be_saved() -> None:
    file = io.BytesIO()
    torch.export.save(exported("paper"), file)
    file.seek(0)
    check_program(torch.export.load(file).module(), make("paper"), tangle(11, 17, seed=4))


def test_an_exported_program_has_gradients() -> None:
    program, model, graph = exported("paper").module(), make("paper"), tangle()
    expected = with_gradients(FromEnds(model), model, graph)
    nodes, edges = graph.nodes.requires_grad_(), graph.edges.requires_grad_()
    answers = program(nodes, edges, graph.ends)
    generator = torch.Generator().manual_seed(1)
    grads = [torch.randn(answer.shape, generator=generator, dtype=torch.float64) for answer in answers]
    for mine, theirs in zip(torch.autograd.grad(answers, (nodes, edges), grads), expected[2:4], strict=True):
        assert_near(mine, theirs, 1e-10)


@pytest.mark.parametrize("recipe", ["paper", "released", "directed"])
def test_an_exported_program_holds_nothing_of_this_library(recipe: str) -> None:
    calls = [node.target for node in exported(recipe).graph.nodes if node.op == "call_function"]
    ours = [call for call in calls if not isinstance(call, torch._ops.OpOverload) and call.__module__ != "_operator"]
    assert calls
    assert ours == []
