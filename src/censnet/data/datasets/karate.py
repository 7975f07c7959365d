"""Zachary's karate club: 34 people, 78 friendships, and the two factions that the club split into."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

# For each person, the friends with a larger number, as W. W. Zachary published them in 1977, numbered from 0.
FRIENDS = {
    0: (1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31),
    1: (2, 3, 7, 13, 17, 19, 21, 30),
    2: (3, 7, 8, 9, 13, 27, 28, 32),
    3: (7, 12, 13),
    4: (6, 10),
    5: (6, 10, 16),
    6: (16,),
    8: (30, 32, 33),
    9: (33,),
    13: (33,),
    14: (32, 33),
    15: (32, 33),
    18: (32, 33),
    19: (33,),
    20: (32, 33),
    22: (32, 33),
    23: (25, 27, 29, 32, 33),
    24: (25, 27, 31),
    25: (31,),
    26: (29, 33),
    27: (33,),
    28: (31, 33),
    29: (32, 33),
    30: (32, 33),
    31: (32, 33),
    32: (33,),
}
WITH_MR_HI = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21)


@dataclass(frozen=True, eq=False)
class Karate:
    """The club: who is a friend of whom, and with whom each one went.

    Shape:
        ends (2, 78), labels (34,), which are places in `classes`.

    Example:
        >>> club = read_karate()
        >>> club.ends.shape, club.labels.bincount().tolist(), club.classes
        (torch.Size([2, 78]), [17, 17], ['Mr. Hi', 'Officer'])
    """

    ends: Tensor
    labels: Tensor
    classes: list[str]


def read_karate() -> Karate:
    """The club, which has no features on its nodes or edges."""
    pairs = [(person, friend) for person, friends in FRIENDS.items() for friend in friends]
    labels = torch.ones(34, dtype=torch.long)
    labels[list(WITH_MR_HI)] = 0
    return Karate(torch.tensor(pairs).t().contiguous(), labels, ["Mr. Hi", "Officer"])
