"""The accounts of the simulated payments, and the draws that every kind of payment is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from censnet.ops.arrays import Array

DAY, HOUR, DAYS = 86_400.0, 3_600.0, 90
COUNTRY_SHARES = (0.28, 0.18, 0.14, 0.14, 0.10, 0.06, 0.05, 0.05)


@dataclass(frozen=True)
class World:
    """The accounts: people by country first, then businesses by country; and the generator that draws everything."""

    draw: Generator
    payments: int
    people: int
    country: Array
    popularity: Array  # of each business as a shop
    activity: Array  # of each person as a customer, adding up to 1
    sellers: Array  # people who sell to strangers

    @property
    def accounts(self) -> int:
        return len(self.country)

    def count(self, per_thousand: float) -> int:
        """A number that grows with the history, for each thousand payments; at least one."""
        return max(1, round(per_thousand * self.payments / 1000))

    def whole(self, low: int, high: int) -> int:
        """A whole number from `low` on, less than `high`."""
        return int(self.draw.integers(low, high))

    def some_people(self, count: int) -> Array:
        return self.draw.integers(0, self.people, count)

    def active_people(self, count: int) -> Array:
        return self.draw.choice(self.people, count, p=self.activity)

    def some_businesses(self, count: int) -> Array:
        return self.draw.integers(self.people, self.accounts, count)

    def shops(self, payers: Array, abroad: float = 0.08) -> Array:
        """A shop for each payer, popular ones more often, mostly of the payer's country."""
        where = np.where(self.draw.random(len(payers)) < abroad, -1, self.country[payers])
        shops = np.arange(self.people, self.accounts)
        chosen = np.empty(len(payers), np.int64)
        for country in np.unique(where):
            here = shops if country < 0 else shops[self.country[shops] == country]
            here = shops if len(here) == 0 else here
            weight = self.popularity[here - self.people]
            mask = where == country
            chosen[mask] = self.draw.choice(here, mask.sum(), p=weight / weight.sum())
        return chosen

    def strangers(self, of: Array, abroad: float = 0.12) -> Array:
        """Another person for each of these people, mostly of the same country."""
        bounds = np.searchsorted(self.country[: self.people], np.arange(len(COUNTRY_SHARES) + 1))
        low, high = bounds[self.country[of]], bounds[self.country[of] + 1]
        anywhere = (self.draw.random(len(of)) < abroad) | (high - low < 2)
        low, high = np.where(anywhere, 0, low), np.where(anywhere, self.people, high)
        found = low + np.floor(self.draw.random(len(of)) * (high - low)).astype(np.int64)
        return np.where(found == of, (of + 1) % self.people, found)

    def neighbors(self, of: Array, spread: float = 15.0) -> Array:
        """A person near each of these people, never the same one."""
        step = np.rint(self.draw.normal(0, spread, len(of))).astype(np.int64)
        return (of + np.where(step == 0, 1, step)) % self.people

    def moments(self, count: int) -> Array:
        """Times by day and evening, seldom at night."""
        evening = self.draw.random(count) < 0.4
        hour = np.where(evening, self.draw.normal(19, 2.5, count), self.draw.normal(12.5, 3, count)) % 24
        return self.draw.integers(0, DAYS, count) * DAY + hour * HOUR

    def amounts(self, median: float, spread: float, count: int) -> Array:
        return median * np.exp(spread * self.draw.normal(size=count))

    def rounded(self, amounts: Array, share: float) -> Array:
        """A share of the amounts as people type them: whole fives."""
        typed = self.draw.random(len(amounts)) < share
        return np.where(typed, np.maximum(5, 5 * np.rint(amounts / 5)), amounts)

    def channels(self, count: int, **shares: float) -> Array:
        total = sum(shares.values())
        return self.draw.choice(list(shares), count, p=[share / total for share in shares.values()])


def settle(payments: int, draw: Generator) -> World:
    """Settle a tenth as many accounts as there will be payments."""
    accounts = payments // 10
    people = round(0.88 * accounts)
    country = draw.choice(len(COUNTRY_SHARES), accounts, p=COUNTRY_SHARES)
    country[:people].sort()
    country[people:].sort()
    popularity, activity = draw.pareto(1.5, accounts - people) + 0.05, np.exp(0.9 * draw.normal(size=people))
    sellers = draw.choice(people, max(2, accounts // 8), replace=False)
    return World(draw, payments, people, country, popularity, activity / activity.sum(), sellers)
