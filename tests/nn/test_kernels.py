"""Each kernel against the dense function of the matrix that it stands for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_checks import check_layer, layer_gradients
from strategies import LAWS, Changed, Sample, assert_near, graphs, incidences, shaken
from torch import Tensor

from censnet.nn import Chebyshev, EdgeLayer, Hop, Kernel, Lanczos, NodeLayer, PageRank, Power
from censnet.nn.kernels import KERNELS, Operator, make_kernel
from censnet.ops import Incidence, textbook

Layer = NodeLayer | EdgeLayer

LAYERS = (NodeLayer, EdgeLayer)
POLYNOMIALS: list[Callable[[], Kernel]] = [
    Hop,
    lambda: Power(1),
    lambda: Power(3),
    lambda: PageRank(1, 0.3),
    lambda: PageRank(4, 0.2),
    lambda: PageRank(3, 0.0),
    lambda: PageRank(3, 1.0),
    lambda: Chebyshev(1),
    lambda: Chebyshev(4),
]


def function_of(kernel: Kernel, S: Tensor) -> Tensor:
    """f(S), by the powers of S."""
    match kernel:
        case Hop():
            return S
        case Power():
            return torch.linalg.matrix_power(S, kernel.steps)
        case PageRank():
            a, K = kernel.teleport, kernel.steps
            powers = {k: a * (1 - a) ** k for k in range(K)}
            powers[K] = (1 - a) ** K
            return sum(c * torch.linalg.matrix_power(S, k) for k, c in powers.items())
        case Chebyshev():
            total = torch.zeros_like(S)
            for order, c in enumerate(kernel.coefficients):
                monomials = np.polynomial.chebyshev.cheb2poly([0] * order + [1])
                T = sum(float(m) * torch.linalg.matrix_power(S, k) for k, m in enumerate(monomials))
                total = total + c * T
            return total
        case Lanczos():
            pairs = zip(kernel.scales, kernel.coefficients, strict=True)
            return sum(c * torch.linalg.matrix_power(S, p) for p, c in pairs)
    raise NotImplementedError(kernel)


def features(incidence: Incidence, width: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    count = incidence.num_nodes + incidence.num_edges
    both = torch.randn(count, width, generator=generator, dtype=torch.float64)
    return both[: incidence.num_nodes], both[incidence.num_nodes :]


def dense(layer: Layer, nodes: Tensor, edges: Tensor, incidence: Incidence) -> Tensor:
    """f(S) H W + H W_self + b, S from textbook.py."""
    T = textbook.incidence_matrix(incidence.ends, incidence.num_nodes)
    rows, read = (nodes, edges) if isinstance(layer, NodeLayer) else (edges, nodes)
    operator = textbook.node_operator if isinstance(layer, NodeLayer) else textbook.edge_operator
    own = {"learned": 0.0, "one_plus_learned": "one"}.get(layer.self_weight, layer.self_weight)
    each = [
        function_of(layer.kernel, operator(T, gate, own, layer.normalization)) for gate in layer.gates(read).unbind(1)
    ]
    out = textbook.multiply(torch.stack(each), rows @ layer.weight) + layer.bias
    return out if layer.root_weight is None else out + rows @ layer.root_weight


# -- against the dense function ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("make", POLYNOMIALS, ids=lambda make: repr(make()))
@given(
    incidence=incidences(max_nodes=5),
    own=st.sampled_from(["incident", "one", "learned", "one_plus_learned"]),
    way=st.sampled_from(["symmetric", "row"]),
    heads=st.sampled_from([1, 2]),
    out=st.sampled_from([2, 6]),
    seed=st.integers(0, 2**16),
)
@settings(max_examples=15)
def test_polynomials_are_those_of_the_matrix(
    make: Callable[[], Kernel], incidence: Incidence, own: str, way: str, heads: int, out: int, seed: int
) -> None:
    for kind in LAYERS:
        layer = shaken(kind(4, 4, out, self_weight=own, heads=heads, normalization=way, kernel=make()), seed)
        check_layer(layer, dense, *features(incidence, 4, seed), incidence, 1e-9)


@given(
    incidence=incidences(max_nodes=4),
    own=st.sampled_from(["incident", "one", "learned", "one_plus_learned"]),
    heads=st.sampled_from([1, 2]),
    seed=st.integers(0, 2**16),
)
@settings(max_examples=30)
def test_lanczos_with_as_many_steps_as_rows_is_exact(incidence: Incidence, own: str, heads: int, seed: int) -> None:
    steps = max(incidence.num_nodes, incidence.num_edges, 4)
    for kind in LAYERS:
        kernel = Lanczos(steps, (0, 1, 2, 5))
        layer = shaken(kind(3, 3, 2, self_weight=own, heads=heads, kernel=kernel), seed)
        nodes, edges = features(incidence, 3, seed)
        expected = dense(layer, nodes, edges, incidence)
        assert_near(layer(nodes, edges, incidence).detach(), expected.detach(), 1e-7)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("kind", LAYERS)
def test_lanczos_is_exact_for_powers_below_its_steps(kind: type[Layer], heads: int) -> None:
    ends = torch.randint(60, (2, 150), generator=torch.Generator().manual_seed(0))
    incidence = Incidence(ends, 60)
    layer = shaken(kind(3, 3, 4, heads=heads, gate="bounded", kernel=Lanczos(6, (0, 1, 3, 5))), seed=1)
    check_layer(layer, dense, *features(incidence, 3, 2), incidence, 1e-9)


def test_lanczos_is_near_for_high_powers() -> None:
    ends = torch.randint(60, (2, 150), generator=torch.Generator().manual_seed(0))
    incidence = Incidence(ends, 60)
    layer = NodeLayer(3, 3, 4, gate="bounded", self_weight="one", kernel=Lanczos(12, (30,))).double()
    nodes, edges = features(incidence, 3, 2)
    expected = dense(layer, nodes, edges, incidence).detach()
    assert_near(layer(nodes, edges, incidence).detach(), expected, 1e-2)


@pytest.mark.parametrize("kernel", [Power(3), PageRank(4), Chebyshev(3), Lanczos(5, (1, 2, 4))], ids=repr)
@pytest.mark.parametrize(("dtype", "relative"), [(torch.float32, 1e-5), (torch.bfloat16, 6e-2)])
@pytest.mark.parametrize("kind", LAYERS)
def test_low_precision_is_close(kind: type[Layer], kernel: Kernel, dtype: torch.dtype, relative: float) -> None:
    ends = torch.randint(30, (2, 60), generator=torch.Generator().manual_seed(3))
    incidence = Incidence(ends, 30)
    layer = shaken(kind(3, 3, 2, gate="bounded", kernel=kernel), seed=2).to(dtype)
    nodes, edges = (tensor.to(dtype) for tensor in features(incidence, 3, 4))
    out = layer(nodes, edges, incidence)
    assert out.dtype == dtype
    expected = dense(layer.double(), nodes.double(), edges.double(), incidence)
    assert_near(out.detach(), expected.detach(), relative)


def test_a_chain_of_two_by_hand() -> None:
    S, x = torch.tensor([[0.0, 2.0], [2.0, 0.0]]), torch.tensor([[1.0], [0.0]])
    operator = Operator(lambda y: S @ y)
    chebyshev = Chebyshev(2)
    torch.nn.init.ones_(chebyshev.coefficients)  # x + S x + (2 S^2 - 1) x
    expected = {
        Hop(): [[0.0], [2.0]],
        Power(3): [[0.0], [8.0]],
        PageRank(2, 0.5): [[0.5 + 0.25 * 4], [0.25 * 2]],
        chebyshev: [[1.0 + 7], [2.0]],
        Lanczos(2, (1,)): [[0.0], [2.0]],
    }
    for kernel, value in expected.items():
        torch.testing.assert_close(kernel(operator, x), torch.tensor(value))


@pytest.mark.parametrize("kernel", ["chebyshev", "lanczos"])
@pytest.mark.parametrize("kind", LAYERS)
def test_learnt_kernels_start_as_one_hop(kind: type[Layer], kernel: str) -> None:
    ends = torch.randint(12, (2, 30), generator=torch.Generator().manual_seed(3))
    incidence = Incidence(ends, 12)
    torch.manual_seed(0)
    learnt = kind(4, 4, 4, kernel=kernel).double()
    torch.manual_seed(0)
    hop = kind(4, 4, 4).double()
    nodes, edges = features(incidence, 4, 1)
    assert_near(learnt(nodes, edges, incidence).detach(), hop(nodes, edges, incidence).detach(), 1e-12)
    with torch.no_grad():
        learnt.kernel.coefficients.fill_(3)
    learnt.reset_parameters()
    assert learnt.kernel.coefficients.sum() == 1
    assert learnt.kernel.coefficients.max() == 1


# -- laws -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@given(
    sample=graphs(union=False, max_nodes=4),
    kernel=st.sampled_from([Power(2), PageRank(3), Chebyshev(3), Lanczos(10, (1, 2, 4))]),
)
@settings(max_examples=20)
def test_laws(law: Callable[[Sample], Changed], sample: Sample, kernel: Kernel) -> None:
    changed, width = law(sample), sample.nodes.shape[1]
    after = changed.sample
    for kind, place in ((NodeLayer, changed.nodes), (EdgeLayer, changed.edges)):
        layer = shaken(kind(width, width, 4, heads=2, gate="bounded", kernel=kernel))
        found = layer(after.nodes, after.edges, after.incidence)[place]
        expected = layer(sample.nodes, sample.edges, sample.incidence)
        assert_near(found.detach(), expected.detach(), 1e-8)


@pytest.mark.parametrize("kind", LAYERS)
def test_lanczos_in_a_batch_is_that_of_each_graph_alone(kind: type[Layer]) -> None:
    generator = torch.Generator().manual_seed(0)
    sizes = [(20, 50), (1, 0), (15, 30), (3, 0), (2, 1)]  # far more rows than steps, and graphs without edges
    layer = shaken(kind(3, 3, 4, heads=2, gate="bounded", kernel=Lanczos(3, (1, 2, 6))), seed=5)
    alone, ends, owner = [], [], []
    for number, (num_nodes, num_edges) in enumerate(sizes):
        graph = Incidence(torch.randint(num_nodes, (2, num_edges), generator=generator), num_nodes)
        alone.append((graph, *features(graph, 3, seed=number)))
        ends.append(graph.ends + len(owner))
        owner += num_nodes * [number]
    union = Incidence(torch.cat(ends, dim=1), len(owner), torch.tensor(owner), len(sizes))
    every = [torch.cat(parts) for parts in zip(*((nodes, edges) for _, nodes, edges in alone), strict=True)]

    found = layer_gradients(lambda x, z: layer(x, z, union), layer, *every)
    apart = layer_gradients(
        lambda x, z: torch.cat(
            [
                layer(part_x, part_z, graph)
                for (graph, _, _), part_x, part_z in zip(
                    alone, x.split([n for n, _ in sizes]), z.split([e for _, e in sizes]), strict=True
                )
            ]
        ),
        layer,
        *every,
    )
    for mine, theirs in zip(found, apart, strict=True):
        assert_near(mine, theirs, 1e-9)
    whole = layer(*every, Incidence(union.ends, union.num_nodes)).detach()  # one graph: one Krylov space for all
    assert float((whole - found[0]).abs().max()) > 1e-3


# -- where a Krylov space ends ----------------------------------------------------------------------------------------


def cycle(length: int) -> Incidence:
    every = torch.arange(length)
    return Incidence(torch.stack([every, (every + 1) % length]), length)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("kind", LAYERS)
def test_zero_columns_and_exhausted_spaces_are_finite(kind: type[Layer], dtype: torch.dtype) -> None:
    layer = kind(3, 3, 2, gate="bounded", self_weight="one", kernel=Lanczos(6, (0, 1, 2, 9))).to(dtype)
    for incidence in (cycle(5), Incidence(torch.empty(2, 0, dtype=torch.int64), 4), cycle(1), cycle(2)):
        for fill in (0.0, 1.0, 1e-30, 1e15):
            nodes = torch.full((incidence.num_nodes, 3), fill, dtype=dtype)
            edges = torch.full((incidence.num_edges, 3), fill, dtype=dtype)
            found = layer_gradients(lambda x, z, graph=incidence: layer(x, z, graph), layer, nodes, edges)
            assert all(tensor.isfinite().all() for tensor in found)
            if fill in (0.0, 1.0):
                layer.double()
                expected = dense(layer, nodes.double(), edges.double(), incidence).detach()
                layer.to(dtype)
                assert_near(found[0], expected, 1e-5 if dtype == torch.float32 else 1e-10)


@pytest.mark.parametrize("kind", LAYERS)
def test_lanczos_has_the_right_gradient_at_an_eigenvector(kind: type[Layer]) -> None:
    """Equal rows on a cycle are an eigenvector while the gates are all 1, and so the first step ends the space."""
    incidence = cycle(5)
    layer = kind(3, 3, 2, gate="bounded", kernel=Lanczos(6, (1, 2))).double()
    nodes, edges = features(incidence, 3, seed=0)
    if kind is NodeLayer:
        nodes = torch.ones_like(nodes)
    else:
        edges = torch.ones_like(edges)
    check_layer(layer, dense, nodes, edges, incidence, 1e-9)


@pytest.mark.parametrize("kind", LAYERS)
def test_lanczos_has_the_right_gradient_where_a_channel_is_zero(kind: type[Layer]) -> None:
    incidence = cycle(5)
    layer = shaken(kind(3, 3, 2, gate="bounded", kernel=Lanczos(6, (1, 2))))
    nodes, edges = features(incidence, 3, seed=0)
    with torch.no_grad():
        layer.weight[:, 0] = 0
    check_layer(layer, dense, nodes, edges, incidence, 1e-9)


# -- the door ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Power(0), r"^steps is 0, expected at least 1$"),
        (lambda: PageRank(0), r"^steps is 0, expected at least 1$"),
        (lambda: PageRank(3, 1.5), r"^teleport is 1.5, expected a probability from 0 to 1$"),
        (lambda: PageRank(3, -0.1), r"^teleport is -0.1, expected a probability from 0 to 1$"),
        (lambda: Chebyshev(0), r"^order is 0, expected at least 1$"),
        (lambda: Lanczos(0), r"^steps is 0, expected at least 1$"),
        (lambda: Lanczos(3, ()), r"^scales is \(\), expected powers of at least 0$"),
        (lambda: Lanczos(3, (2, -1)), r"^scales is \(2, -1\), expected powers of at least 0$"),
        (
            lambda: make_kernel("heat"),
            r"^kernel is 'heat', expected a Kernel or one of 'hop', 'power', 'pagerank', 'chebyshev', 'lanczos'$",
        ),
    ],
)
def test_wrong_arguments_are_named(wrong: Callable[[], Kernel], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wrong()


@pytest.mark.parametrize("settings", [{"normalization": "row"}, {"variant": "released"}])
@pytest.mark.parametrize("kind", LAYERS)
def test_lanczos_needs_a_symmetric_operator(kind: type[Layer], settings: dict[str, str]) -> None:
    path = Incidence(torch.tensor([[0, 1], [1, 2]]), 3)
    with pytest.raises(ValueError, match=r"^the Lanczos kernel needs a symmetric operator: use normalization='symmet"):
        kind(2, 2, 2, kernel="lanczos", **settings)(torch.ones(3, 2), torch.ones(2, 2), path)


def test_every_name_makes_its_kernel_and_a_kernel_is_copied() -> None:
    for name, kind in KERNELS.items():
        assert type(make_kernel(name)) is kind
        assert make_kernel(name) is not make_kernel(name)
    shared = Chebyshev(2)
    first, second = NodeLayer(2, 2, 2, kernel=shared), EdgeLayer(2, 2, 2, kernel=shared)
    with torch.no_grad():
        shared.coefficients.fill_(9)
        first.kernel.coefficients.fill_(5)
    assert second.kernel.coefficients.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (Hop(), "Hop()"),
        (Power(), "Power(2)"),
        (PageRank(), "PageRank(10, teleport=0.1)"),
        (Chebyshev(), "Chebyshev(3)"),
        (Lanczos(), "Lanczos(8, scales=(1, 2, 4, 8, 16))"),
        (Lanczos(2, [3, 1, 3]), "Lanczos(2, scales=(1, 3))"),
    ],
)
def test_reprs_are_signatures(kernel: Kernel, text: str) -> None:
    assert repr(kernel) == text


def test_a_kernel_of_one_s_own_needs_a_forward() -> None:
    with pytest.raises(NotImplementedError):
        Kernel()(Operator(lambda x: x), torch.ones(1, 1))
