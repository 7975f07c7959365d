"""Small graphs with features and weights, the textbook over heads, and the laws that every propagation obeys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from censnet.ops import textbook
from censnet.ops.graph import Graph
from censnet.ops.incidence import Incidence

SELF_WEIGHTS = ("incident", "one", 0.0, 2.5)
NORMALIZATIONS = ("symmetric", "row")
AnyModule = TypeVar("AnyModule", bound=nn.Module)


@dataclass(frozen=True)
class Sample:
    """A graph, features of its nodes and edges of one width, and gates (n,) or (n, heads). All float64."""

    incidence: Incidence
    nodes: Tensor
    edges: Tensor
    node_weight: Tensor
    edge_weight: Tensor

    @property
    def T(self) -> Tensor:  # noqa: N802
        return textbook.incidence_matrix(self.incidence.ends, self.incidence.num_nodes)

    @property
    def graph(self) -> Graph:
        incidence = self.incidence
        return Graph(self.nodes, self.edges, incidence.ends, incidence.owner, incidence.num_graphs)

    def to(self, dtype: torch.dtype) -> Sample:
        numbers = (self.nodes, self.edges, self.node_weight, self.edge_weight)
        return Sample(self.incidence, *(tensor.to(dtype) for tensor in numbers))


def fill(incidence: Incidence, width: int, heads: int | None, seed: int) -> Sample:
    """Features and gates for a graph, from a seed; heads None makes the gates one-dimensional."""
    generator = torch.Generator().manual_seed(seed)

    def numbers(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    tail = () if heads is None else (heads,)
    num_nodes, num_edges = incidence.num_nodes, incidence.num_edges
    return Sample(
        incidence,
        nodes=numbers(num_nodes, width),
        edges=numbers(num_edges, width),
        node_weight=numbers(num_nodes, *tail),
        edge_weight=numbers(num_edges, *tail),
    )


def random_sample(seed: int, most_nodes: int = 12, most_edges: int = 30) -> Sample:
    """A multigraph with loops, from a seed alone."""
    generator = torch.Generator().manual_seed(seed)

    def number(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (1,), generator=generator))

    num_nodes, num_edges = number(1, most_nodes), number(0, most_edges)
    ends = torch.randint(num_nodes, (2, num_edges), generator=generator)
    width = (2, 4, 6)[number(0, 2)]
    return fill(Incidence(ends, num_nodes), width, (None, 1, 2, width)[number(0, 3)], seed)


@st.composite
def incidences(
    draw: st.DrawFn, *, parallel: bool = True, loops: bool = True, union: bool = True, max_nodes: int = 7
) -> Incidence:
    """Isolated nodes and graphs without edges included; a union has an owner."""
    ends: list[tuple[int, int]] = []
    owner: list[int] = []
    num_graphs = draw(st.integers(1, 3)) if union else 1
    for number in range(num_graphs):
        num_nodes, first = draw(st.integers(1, max_nodes)), len(owner)
        node = st.integers(first, first + num_nodes - 1)
        pair = st.tuples(node, node)
        if not loops:
            pair = pair.filter(lambda two: two[0] != two[1])
        if loops or num_nodes > 1:
            ends += draw(st.lists(pair, max_size=2 * max_nodes, unique_by=None if parallel else frozenset))
        owner += num_nodes * [number]
    columns = torch.tensor(ends, dtype=torch.int64).reshape(-1, 2).t()
    if union and draw(st.booleans()):
        return Incidence(columns, len(owner), torch.tensor(owner), num_graphs)
    return Incidence(columns, len(owner))


@st.composite
def graphs(
    draw: st.DrawFn, *, parallel: bool = True, loops: bool = True, union: bool = True, max_nodes: int = 7
) -> Sample:
    """A graph with features and gates from a seed; heads are 1 (with and without an axis), 2, or one a channel."""
    incidence = draw(incidences(parallel=parallel, loops=loops, union=union, max_nodes=max_nodes))
    width = draw(st.sampled_from([2, 4, 6]))
    heads = draw(st.sampled_from([None, 1, 2, width]))
    return fill(incidence, width, heads, seed=draw(st.integers(0, 2**16)))


def simple_graphs() -> st.SearchStrategy[Sample]:
    """As `graphs`, without parallel edges and loops, not a union."""
    return graphs(parallel=False, loops=False, union=False)


# -- the textbook -----------------------------------------------------------------------------------------------------


def features(incidence: Incidence, node_width: int, edge_width: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Random features of the nodes and edges, in float64."""
    generator = torch.Generator().manual_seed(seed)
    nodes = torch.randn(incidence.num_nodes, node_width, generator=generator, dtype=torch.float64)
    return nodes, torch.randn(incidence.num_edges, edge_width, generator=generator, dtype=torch.float64)


def shaken(module: AnyModule, seed: int = 0, scale: float = 1.0) -> AnyModule:
    """The module in float64, no parameter at a special value."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.double().parameters():
            parameter.copy_(scale * torch.randn(parameter.shape, generator=generator))
    return module


def adjacency(incidence: Incidence) -> Tensor:
    """A_v + I: 1 where two nodes are joined, and on the diagonal."""
    T = textbook.incidence_matrix(incidence.ends, incidence.num_nodes)
    return textbook.node_adjacency(T) + torch.eye(incidence.num_nodes, dtype=torch.float64)


def within(incidence: Incidence) -> Tensor:
    """1 for pairs of nodes of one graph."""
    if incidence.owner is None:
        return torch.ones(incidence.num_nodes, incidence.num_nodes, dtype=torch.float64)
    return (incidence.owner.unsqueeze(0) == incidence.owner.unsqueeze(1)).double()


def by_textbook(
    operator: Callable[..., Tensor], rows: Tensor, weight: Tensor, sample: Sample, *settings: object
) -> Tensor:
    """One of textbook.py's operators for each head, multiplied with its share of the channels."""
    gates = weight.unsqueeze(1) if weight.dim() == 1 else weight
    each = torch.stack([operator(sample.T, gate, *settings) for gate in gates.unbind(1)])
    return textbook.multiply(each, rows)


def value_and_gradients(function: Callable[..., Tensor], *inputs: Tensor) -> tuple[Tensor, ...]:
    """What a function gives, and the gradients of its inputs for a fixed random gradient of the result."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    out = function(*leaves)
    generator = torch.Generator().manual_seed(out.numel())
    grad = torch.randn(out.shape, generator=generator, dtype=torch.float64).to(out.dtype)
    return out.detach(), *torch.autograd.grad(out, leaves, grad)


def assert_near(found: Tensor, expected: Tensor, relative: float) -> None:
    """Apart by at most `relative` times the largest entry, or times 1 where all are to be 0."""
    scale = float(expected.abs().max()) if expected.numel() else 0.0
    torch.testing.assert_close(found.to(expected.dtype), expected, rtol=0, atol=relative * (scale or 1.0))


def check_by_textbook(
    fast: Callable[..., Tensor],
    operator: Callable[..., Tensor],
    rows: Tensor,
    weight: Tensor,
    sample: Sample,
    *settings: object,
) -> tuple[Tensor, ...]:
    """Values and both gradients, which are those of a textbook's operator to 1e-10 in float64 and 1e-5 in float32."""
    found = value_and_gradients(partial(fast, incidence=sample.incidence), rows, weight)
    expected = value_and_gradients(
        lambda x, w: by_textbook(operator, x, w, sample, *settings), rows.double(), weight.double()
    )
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.dtype == rows.dtype
        assert_near(mine, theirs, 1e-10 if rows.dtype == torch.float64 else 1e-5)
    return found


# -- laws -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Changed:
    """A sample that was changed, and where its nodes and edges are now."""

    sample: Sample
    nodes: Tensor
    edges: Tensor


def _every(sample: Sample) -> tuple[Tensor, Tensor]:
    return torch.arange(sample.incidence.num_nodes), torch.arange(sample.incidence.num_edges)


def relabel_nodes(sample: Sample) -> Changed:
    nodes, edges = _every(sample)
    order = torch.randperm(len(nodes), generator=torch.Generator().manual_seed(1))
    place = torch.argsort(order)
    changed = replace(
        sample,
        incidence=Incidence(place[sample.incidence.ends], len(nodes)),
        nodes=sample.nodes[order],
        node_weight=sample.node_weight[order],
    )
    return Changed(changed, place, edges)


def reorder_edges(sample: Sample) -> Changed:
    nodes, edges = _every(sample)
    order = torch.randperm(len(edges), generator=torch.Generator().manual_seed(2))
    changed = replace(
        sample,
        incidence=Incidence(sample.incidence.ends[:, order], len(nodes)),
        edges=sample.edges[order],
        edge_weight=sample.edge_weight[order],
    )
    return Changed(changed, nodes, torch.argsort(order))


def swap_ends(sample: Sample) -> Changed:
    nodes, edges = _every(sample)
    ends = sample.incidence.ends.clone()
    ends[:, ::2] = ends[:, ::2].flip(0)
    return Changed(replace(sample, incidence=Incidence(ends, len(nodes))), nodes, edges)


def add_isolated_node(sample: Sample) -> Changed:
    nodes, edges = _every(sample)
    changed = replace(
        sample,
        incidence=Incidence(sample.incidence.ends + 1, len(nodes) + 1),
        nodes=torch.cat([torch.ones_like(sample.nodes[:1]), sample.nodes]),
        node_weight=torch.cat([torch.ones_like(sample.node_weight[:1]), sample.node_weight]),
    )
    return Changed(changed, nodes + 1, edges)


def put_beside_another(sample: Sample) -> Changed:
    nodes, edges = _every(sample)
    ends = torch.tensor([[0, 1, 2, 2], [1, 2, 0, 2]])
    heads = sample.node_weight.shape[1] if sample.node_weight.dim() == 2 else None
    other = fill(Incidence(ends, 3), sample.nodes.shape[1], heads, seed=3)
    owner = torch.cat([torch.zeros(3, dtype=torch.int64), torch.ones(len(nodes), dtype=torch.int64)])
    changed = Sample(
        Incidence(torch.cat([ends, sample.incidence.ends + 3], dim=1), 3 + len(nodes), owner, 2),
        nodes=torch.cat([other.nodes, sample.nodes]),
        edges=torch.cat([other.edges, sample.edges]),
        node_weight=torch.cat([other.node_weight, sample.node_weight]),
        edge_weight=torch.cat([other.edge_weight, sample.edge_weight]),
    )
    return Changed(changed, nodes + 3, edges + 4)


LAWS = (relabel_nodes, reorder_edges, swap_ends, add_isolated_node, put_beside_another)


@contextmanager
def poisoned_memory() -> Iterator[None]:
    """Memory that is not initialised holds NaN, and what is not deterministic raises."""
    before = torch.are_deterministic_algorithms_enabled(), torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        torch.utils.deterministic.fill_uninitialized_memory = before[1]
