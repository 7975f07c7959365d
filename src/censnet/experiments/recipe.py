"""How a method is trained. Plain, so that a machine that only trains needs nothing but torch to read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar


@dataclass(frozen=True)
class Recipe:
    """What a spec says of training; every value that is tried on validation rows is a list.

    Args:
        model: its name, in `MODELS` of the table's module.
        options: what its constructor is given.
        learning_rates: of Adam; the one that does best on validation rows is taken, for each seed by itself.
        epochs: how long each is trained. The epoch that does best on validation rows is taken.
        weight_decay: added to the gradient, as in Adam.
        decay_first: whether it is the first layer's alone, as in the code of GCN.
        batch_size: graphs in a step, where there are many.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}  # an unknown name in a spec is an error

    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    learning_rates: tuple[float, ...] = (0.01, 0.005, 0.001, 0.0005)
    epochs: int = 1000
    weight_decay: float = 0.0
    decay_first: bool = False
    batch_size: int | None = None
