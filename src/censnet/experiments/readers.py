"""How the vectors p that read the other side start, of which the paper says nothing."""

from __future__ import annotations

from typing import Literal, cast

from censnet.nn import CensNet, EdgeLayer, NodeLayer

Readers = Literal["drawn", "positive"]


def start_readers(network: CensNet, readers: Readers) -> None:
    """Leave p as it was drawn, of either sign, or take its absolute value.

    A gate H p of either sign has half of the neighbours subtracted from a sum at random, and ReLU may then leave
    nothing of it. With p positive, and features that are, every layer starts by adding up what its neighbours have.
    """
    if readers not in ("drawn", "positive"):
        raise ValueError(f"readers is {readers!r}, expected 'drawn' or 'positive'")
    if readers == "positive":
        for layer in network.layers:
            cast(NodeLayer | EdgeLayer, layer).reader.data.abs_()
