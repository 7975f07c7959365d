"""A stack of members is each of them alone, in value and in gradient, with every option."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from strategies import features
from torch import Tensor, nn

from censnet.nn import CensNet, Chebyshev, EdgeLayer, GraphHead, Lanczos, NodeLayer, PageRank, RowHead
from censnet.nn.ensemble import count_members, split_members, stack_members
from censnet.nn.export import export
from censnet.nn.norms import Norm
from censnet.ops import Incidence
from censnet.ops.graph import Graph

TANGLE = Incidence(torch.tensor([[0, 1, 2, 1, 3, 3, 3], [1, 2, 0, 0, 3, 0, 3]]), 5)  # parallel, loops, an isolated node
OWNER = torch.tensor([0, 0, 0, 1, 1, 2])
UNION = Incidence(torch.tensor([[0, 1, 2, 3, 4], [1, 2, 0, 4, 4]]), 6, OWNER, 3)  # the last has no edge
M = 3
HEAD = RowHead("node", 3, 2, 2)

RULES: list[dict[str, str]] = [
    {"self_weight": "incident"},
    {"self_weight": "one", "normalization": "row"},
    {"self_weight": "learned", "gate": "bounded"},
    {"variant": "released"},
]
KERNELS = ("hop", "power", PageRank(3), Chebyshev(3), Lanczos(3, (0, 1, 3)))


def graph_of(incidence: Incidence, graph_features: Tensor | None = None) -> Graph:
    nodes, edges = torch.ones(incidence.num_nodes, 1), torch.ones(incidence.num_edges, 1)
    return Graph(nodes, edges, incidence.ends, incidence.owner, incidence.num_graphs, graph_features)


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def shaken(models: Sequence[nn.Module]) -> None:
    """Into float64, each model with numbers of its own and no parameter or statistic at a special value."""
    generator = torch.Generator().manual_seed(1)
    for model in models:
        with torch.no_grad():
            for tensor in (*model.double().parameters(), *model.buffers()):
                if tensor.is_floating_point():
                    tensor.uniform_(0.2, 1.0, generator=generator).mul_(
                        1 if tensor.dim() < 2 else torch.randn(tensor.shape, generator=generator)
                    )


def gradients(outputs: Sequence[Tensor], inputs: Sequence[Tensor], grads: Sequence[Tensor]) -> list[Tensor]:
    found = [(out, grad) for out, grad in zip(outputs, grads, strict=True) if out.requires_grad]
    outs, given = zip(*found, strict=True)
    return list(torch.autograd.grad(outs, inputs, given, materialize_grads=True, allow_unused=True))


def check_stack(models: list[nn.Module], *arguments: object, shared: Sequence[int] = ()) -> None:
    """The stack gives what its members give alone, one beside the other, and has their gradients.

    Outputs whose place is in `shared` are those that no member has changed, and come once for all.
    """
    stack = stack_members(models)
    assert count_members(stack) == len(models)
    leaves = [
        x.clone().requires_grad_() if isinstance(x, Tensor) and x.layout == torch.strided else x for x in arguments
    ]
    dense = [leaf for leaf in leaves if isinstance(leaf, Tensor) and leaf.requires_grad]

    def run(model: nn.Module) -> tuple[Tensor, ...]:
        out = model(*leaves)
        return out if isinstance(out, tuple) else (out,)

    alone = [run(model) for model in models]
    together = run(stack)
    grads = [torch.randn_like(out) for out in together]
    per_member: list[list[Tensor]] = []
    for m, (model, outs) in enumerate(zip(models, alone, strict=True)):
        own = []
        for place, (whole, out, grad) in enumerate(zip(together, outs, grads, strict=True)):
            if place in shared:
                close(whole.detach(), out.detach())
                own.append(grad / len(models))
            else:
                assert whole.shape == (len(out), len(models) * out.shape[1])
                close(whole.chunk(len(models), dim=1)[m].detach(), out.detach())
                own.append(grad.chunk(len(models), dim=1)[m])
        per_member.append(gradients(outs, [*dense, *model.parameters()], own))
    found = gradients(together, [*dense, *stack.parameters()], grads)
    for place in range(len(dense)):
        close(found[place], sum(each[place] for each in per_member))
    for place in range(len(dense), len(found)):
        shares = found[place].reshape(len(models), -1)
        for m, each in enumerate(per_member):
            close(shares[m].view_as(each[place]), each[place])
    check_layout(stack, models)


def check_layout(stack: nn.Module, models: Sequence[nn.Module]) -> None:
    """p.view(M, -1)[m] is member m's, after a pass too, and splitting gives the members back."""
    whole = {**dict(stack.named_parameters()), **dict(stack.named_buffers())}
    for m, (model, again) in enumerate(zip(models, split_members(stack), strict=True)):
        single = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        assert single.keys() == whole.keys() == again.state_dict().keys()
        assert repr(again) == repr(model)
        for name, tensor in single.items():
            if tensor.is_floating_point():
                close(whole[name].detach().view(len(models), -1)[m], tensor.detach().reshape(-1))
                assert again.state_dict()[name].shape == tensor.shape
                close(again.state_dict()[name], tensor.detach())
            else:
                assert whole[name] == tensor


# -- layers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("incidence", [TANGLE, UNION], ids=["tangle", "union"])
@pytest.mark.parametrize("widths", [(2, 3, 4), (6, 5, 4)], ids=["moved first", "mixed first"])
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: "-".join(rule.values()))
@pytest.mark.parametrize("kind", [NodeLayer, EdgeLayer])
def test_a_layer_of_members_is_its_members(
    kind: type[NodeLayer | EdgeLayer],
    rule: dict[str, str],
    heads: int,
    widths: tuple[int, int, int],
    incidence: Incidence,
) -> None:
    models = [kind(*widths, heads=heads, **rule) for _ in range(M)]
    shaken(models)
    check_stack(models, *features(incidence, *widths[:2]), incidence)


@pytest.mark.parametrize("incidence", [TANGLE, UNION], ids=["tangle", "union"])
@pytest.mark.parametrize("out", [1, 4])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("kind", [NodeLayer, EdgeLayer])
def test_each_member_has_a_kernel_of_its_own(
    kind: type[NodeLayer | EdgeLayer], kernel: str, out: int, incidence: Incidence
) -> None:
    models = [kind(3, 3, out, kernel=kernel, gate="bounded", bias=False) for _ in range(M)]
    shaken(models)
    check_stack(models, *features(incidence, 3, 3), incidence)


@pytest.mark.parametrize("kind", [NodeLayer, EdgeLayer])
@pytest.mark.parametrize("out", [2, 5])
def test_each_side_may_be_shared_or_apart(kind: type[NodeLayer | EdgeLayer], out: int) -> None:
    models = [kind(3, 4, out) for _ in range(M)]
    shaken(models)
    stack = stack_members(models)
    nodes, edges = features(TANGLE, M * 3, M * 4)
    one_node, one_edge = nodes[:, :3], edges[:, :4]
    for x, z in ((nodes, edges), (nodes, one_edge), (one_node, edges), (one_node, one_edge)):
        found = stack(x, z, TANGLE)
        for m, model in enumerate(models):
            own_x, own_z = (rows if rows.shape[1] < 9 else rows.chunk(M, dim=1)[m] for rows in (x, z))
            close(found.chunk(M, dim=1)[m].detach(), model(own_x, own_z, TANGLE).detach())


def test_an_edge_scale_weighs_the_edges_of_every_member() -> None:
    models = [NodeLayer(3, 4, 5) for _ in range(M)]
    shaken(models)
    check_stack(models, *features(TANGLE, 3, 4), TANGLE, torch.rand(7, dtype=torch.float64))


# -- the encoder ------------------------------------------------------------------------------------------------------

SETTINGS: list[dict[str, object]] = [
    {},
    {"out_width": 3, "heads": 2},
    {"norm": "batch"},
    {"norm": "layer"},
    {"residual": True, "activation": "tanh"},
    {"residual": "rezero", "norm": "layer", "out_width": 2},
    {"residual": True, "norm": "layer", "self_weight": "learned", "heads": 4, "gate": "bounded"},
    {"variant": "released", "activation": "elu", "residual": True},
    {"variant": "released", "norm": "batch", "out_width": 2},
    {"kernel": Chebyshev(2), "normalization": "row", "bias": False},
    {"kernel": Lanczos(2, (1, 2)), "out_width": 3},
    {"pre_layers": 2, "edge_pre_layer": True, "self_weight": "one_plus_learned"},
]


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("incidence", [TANGLE, UNION], ids=["tangle", "union"])
@pytest.mark.parametrize("word", ["NEN", "NE", "EN"])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_network_of_members_is_its_members(
    setting: dict[str, object], word: str, incidence: Incidence, sparse: bool
) -> None:
    models = [CensNet(4, 4, 4, word, **setting) for _ in range(M)]  # as wide as what comes in: residuals everywhere
    shaken(models)
    nodes, edges = features(incidence, 4, 4)
    if sparse:
        nodes = (nodes * (nodes > 0)).to_sparse_csr()
    check_stack(models, nodes, edges, incidence)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_norms_are_of_each_member_in_training_and_after(norm: str, training: bool) -> None:
    models = [CensNet(2, 3, 5, "NEN", norm=norm, dropout=0.0 if training else 0.5).train(training) for _ in range(M)]
    shaken(models)
    check_stack(models, *features(TANGLE, 2, 3), TANGLE)


@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_norms_of_members_take_a_single_row_and_none(norm: str) -> None:
    for num_edges in (0, 1):
        few = Incidence(torch.tensor([[0], [1]])[:, :num_edges], 3)
        models = [CensNet(2, 3, 1, "NEN", norm=norm) for _ in range(M)]
        shaken(models)
        check_stack(models, *features(few, 2, 3), few)


def test_a_residual_is_by_the_width_of_one_member() -> None:
    models = [CensNet(M * 4, 3, 4, "N", residual=True) for _ in range(M)]  # the stack's 12 channels are those coming in
    shaken(models)
    check_stack(models, *features(TANGLE, M * 4, 3), TANGLE, shared=(1,))


@pytest.mark.parametrize("variant", ["paper", "released"])
def test_a_side_that_is_not_updated_is_shared(variant: str) -> None:
    models = [CensNet(4, 4, 4, "N", variant=variant) for _ in range(M)]
    shaken(models)
    check_stack(models, *features(TANGLE, 4, 4), TANGLE, shared=(1,))


def test_members_drop_channels_of_their_own() -> None:
    model = CensNet(4, 4, 64, "N", dropout=0.5)
    torch.nn.init.ones_(model.layers[0].bias)
    twins = stack_members([model, model]).train()
    first, second = twins(torch.rand(5, 4), torch.rand(7, 4), TANGLE)[0].chunk(2, dim=1)
    assert not (first == 0).equal(second == 0)
    twins.eval()
    first, second = twins(torch.rand(5, 4), torch.rand(7, 4), TANGLE)[0].chunk(2, dim=1)
    torch.testing.assert_close(first, second)


@pytest.mark.slow
def test_a_network_of_members_can_be_exported() -> None:
    generator = torch.Generator().manual_seed(0)
    graph = Graph(torch.randn(5, 3, generator=generator), torch.randn(7, 2, generator=generator), TANGLE.ends)
    model = stack_members([CensNet(3, 2, 4, "NEN", norm="layer") for _ in range(M)]).eval()
    found = export(model, graph).module()(graph.nodes, graph.edges, graph.ends)
    torch.testing.assert_close(found, model(graph.nodes, graph.edges, graph.incidence), atol=1e-5, rtol=1e-5)


# -- heads ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hidden", [(), (6,), (2, 5)])
def test_a_head_of_members_is_its_members(hidden: tuple[int, ...]) -> None:
    models = [RowHead("node", 4, 2, 3, hidden) for _ in range(M)]
    shaken(models)
    check_stack(models, *features(TANGLE, 4, 2), graph_of(TANGLE))


def test_a_head_reads_what_a_network_of_members_gives() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.head = CensNet(3, 2, 4, "NEN", norm="batch"), RowHead("node", 4, 4, 2, (5,))

        def forward(self, nodes: Tensor, edges: Tensor, incidence: Incidence) -> Tensor:
            outputs: Tensor = self.head(*self.encoder(nodes, edges, incidence), graph_of(incidence))
            return outputs

    models = [Both() for _ in range(M)]
    shaken(models)
    check_stack(models, *features(TANGLE, 3, 2), TANGLE)


# -- the start --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "setting", [{}, {"gate": "bounded"}, {"variant": "released"}, {"self_weight": "learned", "kernel": "chebyshev"}]
)
def test_each_member_starts_as_a_plain_network(setting: dict[str, str]) -> None:
    """Each parameter of each member is within the bounds of a plain one, near its spread, and no two are the same."""
    torch.manual_seed(0)
    plain = nn.Sequential(CensNet(300, 40, 50, "NE", **setting), RowHead("node", 50, 50, 40, (60,)))
    members = stack_members(M * [plain])
    torch.manual_seed(1)
    members[0].reset_parameters()
    members[1].reset_parameters()
    expected = dict(plain.named_parameters())
    each = [dict(model.named_parameters()) for model in split_members(members)]
    for name, parameter in expected.items():
        for m in range(M):
            assert each[m][name].shape == parameter.shape
            if parameter.std().item() == 0 or parameter.numel() < 20:
                assert each[m][name].equal(parameter)
            else:
                assert each[m][name].std().item() == pytest.approx(parameter.std().item(), rel=0.3)
                assert not each[m][name].equal(each[m - 1][name])


def test_one_member_is_the_plain_network() -> None:
    torch.manual_seed(0)
    plain = nn.Sequential(CensNet(3, 2, 4, kernel="chebyshev", norm="layer"), RowHead("node", 4, 4, 2))
    one = stack_members([plain])
    torch.testing.assert_close(one.state_dict(), plain.state_dict(), rtol=0, atol=0)
    assert repr(one) == repr(plain) == repr(split_members(plain)[0])


# -- reprs and the door -----------------------------------------------------------------------------------------------


def test_reprs_say_how_many_members() -> None:
    assert repr(stack_members([NodeLayer(4, 2, 8)] * 3)) == "NodeLayer(4 -> 8, reads 2, 'incident', members=3)"
    assert repr(stack_members([CensNet(4, 2, 8, norm="layer")] * 3).norms[0]) == "LayerNorm(8, members=3)"
    assert repr(stack_members([CensNet(4, 2, 8, norm="batch")] * 3).norms[0]) == "BatchNorm(8, members=3)"


def test_frozen_parameters_stay_frozen() -> None:
    models = [RowHead("node", 3, 2, 2) for _ in range(2)]
    for model in models:
        model.mlp[0].bias.requires_grad_(False)
    stack = stack_members(models)
    assert [p.requires_grad for p in stack.parameters()] == [p.requires_grad for p in models[0].parameters()]
    assert stack.mlp[0].weight.data_ptr() != models[0].mlp[0].weight.data_ptr()


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ([], r"^models is empty, expected at least one$"),
        ([HEAD, stack_members([HEAD, HEAD])], r"^model 1 has 2 members, expected 1: split it first$"),
        ([HEAD, RowHead("node", 3, 2, 1)], r"^model 1 differs from model 0, expected parameters of one shape"),
        ([nn.Sequential(nn.Linear(2, 2))], r"^0 is a Linear, which cannot have members$"),
        ([nn.Linear(2, 2)], r"^the model is a Linear, which cannot have members$"),
        (
            [nn.Sequential(HEAD, stack_members([HEAD, HEAD]))],
            r"^the parts of the model have \[1, 2\] members, expected one number$",
        ),
    ],
)
def test_what_cannot_be_stacked_is_named(models: list[nn.Module], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        stack_members(models)


@pytest.mark.slow
@pytest.mark.parametrize("over", ["nodes", "edges", "both"])
@pytest.mark.parametrize("hidden", [(), (4,)])
@pytest.mark.parametrize("incidence", [TANGLE, UNION], ids=["tangle", "union"])
@pytest.mark.parametrize("norm", [None, "batch", "layer"])
def test_a_head_for_graphs_of_members_is_its_members(
    norm: Norm | None, incidence: Incidence, hidden: tuple[int, ...], over: str
) -> None:
    models = [
        GraphHead(3, 2, 2, ("mean", "sum", "attention"), over, hidden, norm=norm, graph_width=2)  # type: ignore[arg-type]
        for _ in range(M)
    ]
    shaken(models)
    graph = graph_of(incidence, torch.randn(incidence.num_graphs, 2, dtype=torch.float64))
    check_stack(models, *features(incidence, 3, 2), graph)  # features that no layer has updated, all members share
    wide_nodes, wide_edges = features(incidence, 3 * M, 2 * M)
    found = stack_members(models)(wide_nodes, wide_edges, graph).chunk(M, dim=1)
    for model, out, nodes, edges in zip(models, found, wide_nodes.chunk(M, 1), wide_edges.chunk(M, 1), strict=True):
        close(out, model(nodes, edges, graph))


def test_wrong_widths_are_named() -> None:
    nodes, edges = torch.ones(5, 6), torch.ones(7, 2)
    with pytest.raises(ValueError, match=r"^nodes has shape \(5, 6\), expected \(5, 3\): \(N, node_width\)$"):
        stack_members(M * [NodeLayer(3, 2, 4)])(nodes, edges, TANGLE)
    with pytest.raises(ValueError, match=r"^nodes has shape \(5, 6\), expected \(\*, 3\): \(n, width\)$"):
        stack_members(M * [HEAD])(nodes, edges, graph_of(TANGLE))
    stacked = stack_members(M * [GraphHead(3, 2, 1)])
    with pytest.raises(ValueError, match=r"^nodes has shape \(5, 6\), expected \(5, 3\)"):
        stacked(nodes, edges, graph_of(TANGLE))
