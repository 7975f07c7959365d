"""What a learner needs of the network that embeds for it. CensNet has it; a peer to compare with may stand in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from censnet.settings.schema import ModelSettings


class Encoder(Protocol):
    """A torch module: (nodes, edges, incidence) -> embedded nodes and edges.

    With M members (`censnet.nn.ensemble`) a side that it renews comes out with M times as many channels. Its layers are
    in `layers`, so that `training.weight_decay_by_name` finds the first as `encoder.layers.0`, whatever the network is.
    """

    @property
    def layers(self) -> Any: ...

    @property
    def word(self) -> str:
        """Which side it renews by its neighbours, in order: a word of N and E, as of a `CensNet`."""

    @property
    def steps(self) -> int:
        """How many hops each letter of the word is."""

    @property
    def variant(self) -> str:
        """ "released" where a row also reads the largest entry of a column; else "paper"."""

    @property
    def out_node_width(self) -> int:
        """Channels of each node that goes out, of one member."""

    @property
    def out_edge_width(self) -> int:
        """Channels of each edge that goes out, of one member."""

    def reset_parameters(self) -> None:
        """Start afresh."""

    def __call__(self, *args: Any, **kwds: Any) -> Any: ...


MakeEncoder = Callable[[int, int, ModelSettings, int], Encoder]  # from node_width, edge_width, settings and members
