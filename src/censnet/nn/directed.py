"""The layers of a directed graph: an edge is a start and an end, and each side still gates the other."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from censnet.nn.ensemble import batched_linear, check_rows, init_members
from censnet.nn.kernels import Hop
from censnet.nn.layers import LAYERS, IncidenceLayer, LayerOptions, Side, show_options
from censnet.ops.checks import check_shape
from censnet.ops.directed import combine_edges, sum_along
from censnet.ops.incidence import Incidence
from censnet.ops.normalization import scale_rows


class DirectedLayer(IncidenceLayer):
    """Parameters of a directed layer: those of `IncidenceLayer`, and a matrix for each further relation.

    Args:
        node_width, edge_width, out_width, options, keywords: as in `IncidenceLayer`. Rows always have a root weight
            (`self_weight` is "learned"), sums are means, and the kernel is one hop.
    """

    relations: ClassVar[dict[str, Side]]  # parameter of a relation -> the side whose channels it mixes
    gated: ClassVar[tuple[str, ...]]  # further gate vectors, beside `gate_weight`

    def _resolve(self, options: LayerOptions) -> LayerOptions:
        for name, expected in (("self_weight", "learned"), ("normalization", "row")):
            value = getattr(options, name)
            if value not in (None, expected):
                raise ValueError(f"{name} is {value!r}, expected {expected!r} in a directed layer: leave it out")
        if options.variant != "paper":
            raise ValueError(f"variant is {options.variant!r}, expected 'paper': the released code has no direction")
        return replace(options, directed=True, self_weight="learned", normalization=None)

    def _extend(self, widths: dict[Side, int], options: LayerOptions) -> None:
        if not isinstance(self.kernel, Hop):
            raise ValueError(f"kernel is {self.kernel!r}, expected 'hop': a directed operator is not symmetric")
        self.names = [name for name in self.relations if self._has(name, options)]
        for name in self.names:
            setattr(self, name, nn.Parameter(torch.empty(widths[self.relations[name]], self.out_width)))
        for name in self.gated:
            setattr(self, name, nn.Parameter(torch.empty_like(self.gate_weight)))
        self.reset_parameters()

    def _has(self, name: str, options: LayerOptions) -> bool:
        """Whether the options ask for a relation."""
        return True

    def reset_parameters(self) -> None:
        """Initialize as `IncidenceLayer` does; the matrices of all relations as W, all gate vectors as p."""
        super().reset_parameters()
        for name in getattr(self, "names", ()):  # none yet while the base class is constructed
            init_members(getattr(self, name), nn.init.xavier_uniform_)
        for name in self.gated if hasattr(self, "names") else ():
            self._reset_gate(getattr(self, name))

    def matrix_sides(self) -> dict[str, Side]:
        """As in `IncidenceLayer`, with the matrices of all relations and all gate vectors."""
        relations = {name: self.relations[name] for name in self.names}
        return {**super().matrix_sides(), **relations, **dict.fromkeys(self.gated, self.reads)}


class DirectedNodeLayer(DirectedLayer):
    r"""Update the nodes of a directed graph, from the edges that leave a node and from those that arrive.

    .. math::
        H_v' = \sigma\bigl( D_o^{-1} S (\operatorname{diag}(w_o) R^\top H_v W_o + H_e U_o)
        + D_i^{-1} R (\operatorname{diag}(w_i) S^\top H_v W_i + H_e U_i) + H_v W_0 \bigr)

    S marks the node where an edge starts and R that where it ends; :math:`D_o` and :math:`D_i` count the edges that
    leave and arrive (at least 1), parallel ones each. The gates :math:`w_o, w_i` are functions of :math:`H_e`. The
    terms with U let a node read the features of its edges, and not only how much they let pass; they are there with
    ``edge_content=True``.

    **What is computed.** Means over the edges of a node, by a weighted sum for each direction; :math:`H_e` is summed
    before it is mixed: :math:`S (H_e U) = (S H_e) U`. :math:`O(E d)`.

    Args:
        node_width, edge_width, out_width, options, keywords: as in `NodeLayer`.

    Shape:
        nodes :math:`(N, d_v)`, edges :math:`(E, d_e)` -> nodes :math:`(N, d_\text{out})`.

    Example:
        >>> path = Incidence(ends=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> layer = DirectedNodeLayer(node_width=4, edge_width=2, out_width=8, edge_content=True)
        >>> layer
        DirectedNodeLayer(4 -> 8, reads 2, 'learned')
        >>> layer(torch.randn(3, 4), torch.randn(2, 2), path).shape
        torch.Size([3, 8])
    """

    updates, reads = "node", "edge"
    relations: ClassVar[dict[str, Side]] = {"in_weight": "node", "out_content": "edge", "in_content": "edge"}
    gated = ("in_gate_weight",)
    in_weight: nn.Parameter
    out_content: nn.Parameter
    in_content: nn.Parameter
    in_gate_weight: nn.Parameter

    def _has(self, name: str, options: LayerOptions) -> bool:
        return options.edge_content or not name.endswith("content")

    def forward(self, nodes: Tensor, edges: Tensor, incidence: Incidence, edge_scale: Tensor | None = None) -> Tensor:
        """Compute the updated nodes. `edge_scale` (E,) multiplies the gates and the content of each edge."""
        check_rows("nodes", nodes, incidence.num_nodes, self.in_width, self.members, "(N, node_width)")
        check_rows("edges", edges, incidence.num_edges, self.read_width, self.members, "(E, edge_width)")
        self._check_dtypes(nodes, edges)
        if edge_scale is not None:
            check_shape("edge_scale", edge_scale, (incidence.num_edges,), "(E,)")
        gates = [self.gates(edges), self.gates(edges, self.in_gate_weight)]
        if edge_scale is not None:
            gates = [scale_rows(gate, edge_scale) for gate in gates]
        out = batched_linear(nodes, _present(self.root_weight))
        out = out if self.bias is None else out + self.bias
        for end, weight in ((0, self.weight), (1, self.in_weight)):
            found = sum_along(batched_linear(nodes, weight), gates[end], incidence, end)  # type: ignore[arg-type]
            out = out + scale_rows(found, _reciprocal(incidence, end, 0, found.dtype))
        if "out_content" not in self.names:
            return out
        sums = incidence.scatter_both(edges if edge_scale is None else scale_rows(edges, edge_scale))
        for end, weight in enumerate((self.out_content, self.in_content)):
            out = out + batched_linear(scale_rows(sums[end], _reciprocal(incidence, end, 0, edges.dtype)), weight)
        return out


class DirectedEdgeLayer(DirectedLayer):
    r"""Update the edges of a directed graph, from the edges that meet them at their start and at their end.

    .. math::
        H_e' = \sigma\bigl( \operatorname{diag}(u_s) (m_1 W_1 + m_2 W_2) + \operatorname{diag}(u_t) (m_3 W_3 + m_4 W_4)
        + H_e W_0 + S^\top H_v V_s + R^\top H_v V_t \bigr)

    The four means of an edge e run over the OTHER edges f that meet it: :math:`m_1` those with the same start,
    :math:`m_2` those that end where e starts, :math:`m_3` those that start where e ends, :math:`m_4` those with the
    same end. The gates :math:`u_s, u_t` are functions of :math:`H_v` at the start and at the end.
    With ``pair_means=True`` two further means are added, :math:`m_5 W_5 + m_6 W_6`: over the other edges between the
    same two nodes, in the same (parallel) and in the opposite direction (reciprocal).

    **What is computed.** With the node sums S h and R h, :math:`d_o` and :math:`d_i` the number of edges that leave and
    arrive, and l = 1 for a loop (else 0), an edge e = (s, t) has

    .. math::
        m_1 = \frac{(Sh)_s - h_e}{\max(d_o(s) - 1, 1)}, \quad m_2 = \frac{(Rh)_s - l h_e}{\max(d_i(s) - l, 1)}, \quad
        m_3 = \frac{(Sh)_t - l h_e}{\max(d_o(t) - l, 1)}, \quad m_4 = \frac{(Rh)_t - h_e}{\max(d_i(t) - 1, 1)}

    so that all but the terms of e itself are mixed and gated at the nodes, of which there are fewer than edges, and
    then read from there. :math:`O(E d)`; no line graph.

    Args:
        node_width, edge_width, out_width, options, keywords: as in `EdgeLayer`.

    Shape:
        nodes :math:`(N, d_v)`, edges :math:`(E, d_e)` -> edges :math:`(E, d_\text{out})`.

    Example:
        >>> path = Incidence(ends=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> layer = DirectedEdgeLayer(node_width=4, edge_width=2, out_width=8, gate="bounded", pair_means=True)
        >>> layer(torch.randn(3, 4), torch.randn(2, 2), path).shape
        torch.Size([2, 8])
    """

    updates, reads = "edge", "node"
    read_hops = -1
    relations: ClassVar[dict[str, Side]] = {
        "into_start_weight": "edge",  # W_2; W_1 is `weight`
        "out_of_end_weight": "edge",  # W_3
        "same_end_weight": "edge",  # W_4
        "parallel_weight": "edge",  # W_5
        "reciprocal_weight": "edge",  # W_6
        "start_content": "node",  # V_s
        "end_content": "node",  # V_t
    }
    gated = ("end_gate_weight",)
    into_start_weight: nn.Parameter
    out_of_end_weight: nn.Parameter
    same_end_weight: nn.Parameter
    parallel_weight: nn.Parameter
    reciprocal_weight: nn.Parameter
    start_content: nn.Parameter
    end_content: nn.Parameter
    end_gate_weight: nn.Parameter

    def _has(self, name: str, options: LayerOptions) -> bool:
        return options.pair_means or name not in ("parallel_weight", "reciprocal_weight")

    def forward(self, nodes: Tensor, edges: Tensor, incidence: Incidence) -> Tensor:
        """Compute the updated edges."""
        check_rows("nodes", nodes, incidence.num_nodes, self.read_width, self.members, "(N, node_width)")
        check_rows("edges", edges, incidence.num_edges, self.in_width, self.members, "(E, edge_width)")
        self._check_dtypes(nodes, edges)
        if edges.shape[1] < self.members * self.in_width:  # input features, which the members share
            edges = edges.repeat(1, self.members)
        u_s, u_t = self.gates(nodes), self.gates(nodes, self.end_gate_weight)
        leaving, arriving = incidence.scatter_both(edges)  # S h, R h
        out_rest, in_rest, out_all, in_all = (
            _reciprocal(incidence, end, less, edges.dtype) for less in (1, 0) for end in (0, 1)
        )
        first = scale_rows(batched_linear(leaving, self.weight), out_rest)
        first = first + scale_rows(batched_linear(arriving, self.into_start_weight), in_all)
        second = scale_rows(batched_linear(leaving, self.out_of_end_weight), out_all)
        second = second + scale_rows(batched_linear(arriving, self.same_end_weight), in_rest)
        at_start = scale_rows(first, u_s) + batched_linear(nodes, self.start_content)
        at_start = at_start if self.bias is None else at_start + self.bias
        at_end = scale_rows(second, u_t) + batched_linear(nodes, self.end_content)
        factor = torch.cat([scale_rows(u_s, out_rest), scale_rows(u_t, in_rest)])
        of_edge = torch.cat([_present(self.root_weight), self.weight, self.same_end_weight], dim=-1)
        out = combine_edges(edges, of_edge, torch.cat([at_start, at_end]), factor, incidence)
        if torch.compiler.is_compiling():
            every = torch.arange(edges.shape[0], device=edges.device)
            change = self._loops(every, edges, leaving, arriving, u_s, u_t, incidence)
            out = out + torch.where((incidence.ends[0] == incidence.ends[1]).unsqueeze(1), change, 0)
        elif incidence.is_loop is not None:
            loops = incidence.is_loop.nonzero().squeeze(1)
            change = self._loops(loops, edges, leaving, arriving, u_s, u_t, incidence)
            out = out.index_add(0, loops, change.to(out.dtype))
        return out + self._pairs(edges, incidence) if "parallel_weight" in self.names else out

    def of_virtual_edges(self, nodes: Tensor, edges: Tensor, incidence: Incidence) -> tuple[Tensor, Tensor]:
        """a and b of each node: a further edge from s to t, without features and parallel ones, would get a_s + b_t."""
        check_rows("nodes", nodes, incidence.num_nodes, self.read_width, self.members, "(N, node_width)")
        check_rows("edges", edges, incidence.num_edges, self.in_width, self.members, "(E, edge_width)")
        sums, dtype = incidence.scatter_both(edges), edges.dtype
        leaving, arriving = (scale_rows(sums[end], _reciprocal(incidence, end, 0, dtype)) for end in (0, 1))
        first = batched_linear(leaving, self.weight) + batched_linear(arriving, self.into_start_weight)
        second = batched_linear(leaving, self.out_of_end_weight) + batched_linear(arriving, self.same_end_weight)
        at_start = scale_rows(first, self.gates(nodes)) + batched_linear(nodes, self.start_content)
        at_end = scale_rows(second, self.gates(nodes, self.end_gate_weight)) + batched_linear(nodes, self.end_content)
        return at_start if self.bias is None else at_start + self.bias, at_end

    def _loops(
        self,
        loops: Tensor,
        edges: Tensor,
        leaving: Tensor,
        arriving: Tensor,
        u_s: Tensor,
        u_t: Tensor,
        incidence: Incidence,
    ) -> Tensor:
        """For loops, m_2 and m_3 without the loop itself, less what they were with it. -> (loops, out_width)"""
        node, h = incidence.ends[0, loops], edges.index_select(0, loops)
        changes = []
        for sums, end, weight, gate in (
            (arriving, 1, self.into_start_weight, u_s),
            (leaving, 0, self.out_of_end_weight, u_t),
        ):
            rest, every = (_reciprocal(incidence, end, less, edges.dtype)[node] for less in (1, 0))
            around = sums.index_select(0, node)
            change = scale_rows(around - h, rest) - scale_rows(around, every)
            changes.append(scale_rows(batched_linear(change, weight), gate.index_select(0, node)))
        return changes[0] + changes[1]

    def _pairs(self, edges: Tensor, incidence: Incidence) -> Tensor:
        """m_5 W_5 + m_6 W_6: the means over parallel and over reciprocal edges."""
        parallel, reciprocal = incidence.parallel_count, incidence.reciprocal_count
        dtype = edges.dtype
        rest = (1 / (parallel - 1).clamp(min=1).double()).to(dtype)
        mean = scale_rows(incidence.sum_parallel(edges) - edges, rest)
        out = batched_linear(mean, self.parallel_weight)
        back = incidence.sum_reciprocal(edges)
        if torch.compiler.is_compiling() or incidence.is_loop is not None:
            loop = (incidence.ends[0] == incidence.ends[1]).long()
            back, reciprocal = back - scale_rows(edges, loop), reciprocal - loop
        per_back = (1 / reciprocal.clamp(min=1).double()).to(dtype)
        return out + batched_linear(scale_rows(back, per_back), self.reciprocal_weight)


def _reciprocal(incidence: Incidence, end: int, less: int, dtype: torch.dtype) -> Tensor:
    """1 / max(number of edges that leave (end 0) or arrive (end 1) - less, 1) of each node. (N,)"""

    def make() -> Tensor:
        return (1 / (incidence.end_degree[end] - less).clamp(min=1).double()).to(dtype)

    return incidence.cache(("one over degree", end, less, dtype), make)


def _present(weight: Tensor | None) -> Tensor:
    assert weight is not None
    return weight


DIRECTED: dict[str, type[DirectedLayer]] = {"N": DirectedNodeLayer, "E": DirectedEdgeLayer}
for _layer in DIRECTED.values():
    show_options(_layer)


def layer_type(letter: str, directed: bool) -> type[IncidenceLayer]:
    """The class of a letter of `CensNet(layers=...)`."""
    return DIRECTED[letter] if directed else cast(type[IncidenceLayer], LAYERS[letter])
