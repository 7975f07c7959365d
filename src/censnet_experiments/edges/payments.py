"""A simulated history of payments between accounts, with three kinds of fraud.

    python -m censnet_experiments.edges.payments --to payments
    censnet train payments --target edge:is_fraud

People are paid salaries, pay rent, shop, share bills, lend each other money, buy from strangers and travel;
businesses pay invoices. Three kinds of payments are fraud:

- **rings**: 3 to 6 accounts pass a similar amount on in a circle, within hours, once to three times;
- **mules**: an account collects from several victims within days, and forwards to one account or spreads to several;
- **stolen cards**: within hours a normal account pays recipients that it never paid before.

The accounts behind them have an ordinary life as well, their amounts, channels and hours overlap with everybody's, and
each kind has an innocent counterpart: friends who settle debts in a circle and companies that pool their cash,
treasurers who collect and pay on, friends who share a bill, sellers with many buyers, travelers who pay many new shops
in a day. Of the fraud, 8 % is never reported and stays unmarked. A single row therefore tells little; the payments
around it tell more. Its difficulty was set with boosted trees; no network was trained on it before it was fixed.
"""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from censnet.data.tables.files import Tables
from censnet.ops.arrays import Array
from censnet_experiments.edges.payments_world import DAY, DAYS, HOUR, World, settle

CURRENCIES = {"DE": "EUR", "FR": "EUR", "IT": "EUR", "GB": "GBP", "PL": "PLN", "SE": "SEK", "CH": "CHF", "US": "USD"}
RATES = {"EUR": 1.0, "GBP": 0.86, "PLN": 4.3, "SEK": 11.2, "CHF": 0.95, "USD": 1.09}  # for one euro
FRAUD = ("ring", "mule", "stolen card")
UNREPORTED = 0.08  # share of the payments of fraud that nobody reports


def simulate_payments(payments: int = 200_000, seed: int = 0) -> Tables:
    """Simulate 90 days of payments between a tenth as many accounts.

    Args:
        payments: about how many there are, in the order of their times; 2,000 or more. Those after the 90 days are
            left out.
        seed: of everything.

    Returns:
        `nodes`: id, country, kind, opened (days before the history begins); `edges`: source, target, time (seconds
        since it began), amount (in its currency), currency, channel, is_fraud.
    """
    nodes, edges = simulate_history(payments, seed)
    return Tables(nodes, edges.drop(columns="scheme"))


def simulate_history(payments: int = 200_000, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The nodes and edges of `simulate_payments`, and one more column of edges, `scheme`: what each payment is for.

    `scheme` gives the label away. It serves to count which kinds of fraud a model finds.
    """
    if payments < 2_000:
        raise ValueError(f"payments is {payments}, expected 2,000 or more")
    world = settle(payments, np.random.default_rng(seed))
    regular = [_salaries(world), _rents(world), _friends(world), _invoices(world), _markets(world)]
    alike = [_bills(world), _collections(world), _settlements(world), _poolings(world), _trips(world)]
    fraud = [_rings(world), _mules(world)]
    num_stolen = world.count(0.85)
    left = payments - sum(map(len, regular + alike + fraud)) - round(5.5 * num_stolen)
    shopping = _shopping(world, left)
    stolen = _stolen_cards(world, num_stolen, shopping)
    history = pd.concat([*regular, *alike, *fraud, shopping, stolen], ignore_index=True)
    return _finish(world, history)


def _rows(scheme: str, source: Any, target: Any, time: Any, amount: Any, channel: Any) -> pd.DataFrame:
    columns = {"source": source, "target": target, "time": time, "amount": amount, "channel": channel}
    return pd.DataFrame(columns).assign(scheme=scheme)


def _monthly(
    scheme: str, world: World, payer: Array, payee: Array, amount: Array, day: float, **shares: float
) -> pd.DataFrame:
    """The same payment three times, a month apart."""
    channel = world.channels(len(payer), **shares)
    frames = []
    for month in range(3):
        time = (day + 30 * month + world.draw.exponential(0.7, len(payer))) * DAY
        frames.append(_rows(scheme, payer, payee, time, amount, channel))
    return pd.concat(frames)


def _salaries(world: World) -> pd.DataFrame:
    employees = np.flatnonzero(world.draw.random(world.people) < 0.55)
    size = world.draw.pareto(1.4, world.accounts - world.people) + 0.02
    employers = world.people + world.draw.choice(len(size), len(employees), p=size / size.sum())
    amount = world.amounts(2_100, 0.45, len(employees))
    return _monthly("salary", world, employers, employees, amount, 26.3, transfer=1)


def _rents(world: World) -> pd.DataFrame:
    tenants = np.flatnonzero(world.draw.random(world.people) < 0.3)
    private = world.draw.random(len(tenants)) < 0.6
    landlords = np.where(private, world.neighbors(tenants, 300), world.some_businesses(len(tenants)))
    amount = world.rounded(world.amounts(750, 0.4, len(tenants)), 0.5)
    return _monthly("rent", world, tenants, landlords, amount, 1.3, transfer=0.6, debit=0.4)


def _friends(world: World) -> pd.DataFrame:
    """Pairs of people, mostly neighbors, pay each other again and again, some pairs far more often than others."""
    first = np.repeat(np.arange(world.people), 1 + world.draw.poisson(2, world.people))
    second = np.where(world.draw.random(len(first)) < 0.12, world.strangers(first), world.neighbors(first))
    weight = world.draw.pareto(1.3, len(first)) + 0.1
    pair = world.draw.choice(len(first), world.count(90), p=weight / weight.sum())
    swap = world.draw.random(len(pair)) < world.draw.beta(0.7, 0.7, len(first))[pair]
    payer, payee = np.where(swap, second[pair], first[pair]), np.where(swap, first[pair], second[pair])
    amount = world.rounded(world.amounts(38, 1.2, len(pair)), 0.6)
    shares = {"instant": 0.5, "transfer": 0.3, "wallet": 0.2}
    lent = _rows("friends", payer, payee, world.moments(len(pair)), amount, world.channels(len(pair), **shares))
    back = lent[world.draw.random(len(lent)) < 0.2].rename(columns={"source": "target", "target": "source"})
    back = back.assign(
        time=back["time"] + world.draw.exponential(2 * DAY, len(back)),
        amount=back["amount"] * world.draw.choice([0.5, 1.0, 1.0], len(back)),
        channel=world.channels(len(back), **shares),
    )
    return pd.concat([lent, back])


def _invoices(world: World) -> pd.DataFrame:
    count = world.count(50)
    few = world.count(12)
    customers, suppliers = world.some_businesses(few), world.some_businesses(few)
    weight = world.draw.pareto(1.2, few) * (customers != suppliers)
    pair = world.draw.choice(few, count, p=weight / weight.sum())
    amount = world.amounts(480, 1.4, count)
    channel = world.channels(count, transfer=0.8, debit=0.1, instant=0.1)
    return _rows("invoice", customers[pair], suppliers[pair], world.moments(count), amount, channel)


def _shopping(world: World, count: int) -> pd.DataFrame:
    """People at their usual shops and at others, often several within hours; one payment in fifty is paid back."""
    refunds = count // 50
    size = world.draw.geometric(0.4, count)
    size = size[: np.searchsorted(np.cumsum(size), count - refunds) + 1]
    who = world.active_people(len(size))
    payer = np.repeat(who, size)[: count - refunds]
    start = np.repeat(world.moments(len(size)), size)[: count - refunds]
    time = start + world.draw.exponential(2 * HOUR, len(payer))
    usual = world.shops(np.repeat(np.arange(world.people), 4)).reshape(-1, 4)
    habit = usual[payer, world.draw.choice(4, len(payer), p=[0.4, 0.3, 0.2, 0.1])]
    shop = np.where(world.draw.random(len(payer)) < 0.65, habit, world.shops(payer))
    amount = world.amounts(29, 1.1, len(payer))
    channel = world.channels(len(payer), card=0.62, wallet=0.15, online=0.18, debit=0.03, instant=0.02)
    bought = _rows("shopping", payer, shop, time, amount, channel)
    back = bought.iloc[world.draw.choice(len(bought), refunds, replace=False)]
    back = back.rename(columns={"source": "target", "target": "source"})
    later = back["time"] + world.draw.exponential(5 * DAY, refunds)
    return pd.concat([bought, back.assign(time=later, scheme="refund")])


def _markets(world: World) -> pd.DataFrame:
    """People buy from people whom they never paid before; a few sellers have many buyers."""
    count = world.count(60)
    weight = world.draw.pareto(1.5, len(world.sellers)) + 0.1
    seller = world.draw.choice(world.sellers, count, p=weight / weight.sum())
    amount = world.rounded(world.amounts(85, 1.1, count), 0.5)
    channel = world.channels(count, instant=0.4, transfer=0.25, wallet=0.15, card=0.12, online=0.08)
    return _rows("market", world.strangers(seller), seller, world.moments(count), amount, channel)


def _bills(world: World) -> pd.DataFrame:
    """One of several friends pays a shop, and the others pay their shares to that one within a day."""
    frames = []
    for payer in world.active_people(world.count(12)):
        size = world.whole(2, 7)
        time, share = world.moments(1)[0], world.amounts(32, 0.9, 1)[0]
        shop = world.shops(np.array([payer]))
        frames.append(_rows("bill", payer, shop, time, share * (size + 1), world.channels(1, card=0.8, wallet=0.2)))
        friends = world.neighbors(np.full(size, payer))
        later = time + world.draw.exponential(9 * HOUR, size)
        channel = world.channels(size, instant=0.5, transfer=0.3, wallet=0.2)
        frames.append(_rows("bill", friends, payer, later, world.rounded(np.full(size, share), 0.5), channel))
    return pd.concat(frames)


def _collections(world: World) -> pd.DataFrame:
    """A treasurer collects from people nearby within days, and pays a shop or a person: the counterpart of a mule."""
    frames = []
    for treasurer in world.some_people(world.count(1.2)):
        size = world.whole(4, 13)
        members = world.neighbors(np.full(size, treasurer), 40)
        share = world.rounded(world.amounts(70, 0.8, 1), 0.8)[0]
        start = world.moments(1)[0]
        time = start + world.draw.uniform(0, 3 * DAY, size)
        channel = world.channels(size, instant=0.5, transfer=0.3, wallet=0.2)
        frames.append(_rows("collection", members, treasurer, time, share, channel))
        one = np.array([treasurer])
        payee = world.shops(one) if world.draw.random() < 0.4 else world.strangers(one)
        last = time.max() + world.draw.exponential(10 * HOUR)
        channel = world.channels(1, transfer=0.6, instant=0.4)
        frames.append(_rows("collection", treasurer, payee, last, 0.95 * size * share, channel))
    return pd.concat(frames)


def _circle(world: World, members: Array, amount: float, keep: float, gap: float) -> tuple[Array, Array]:
    """Times and amounts of a payment that is passed on from each member to the next, at most `keep` of it kept."""
    size = len(members)
    time = world.moments(1)[0] + np.cumsum(world.draw.exponential(gap, size))
    return time, amount * np.cumprod(world.draw.uniform(1 - keep, 1, size))


def _settlements(world: World) -> pd.DataFrame:
    """Friends who settle debts in a circle or along a line within a day or two: the counterpart of a ring."""
    frames = []
    for first in world.some_people(world.count(2)):
        size = world.whole(3, 6)
        members = (first + world.draw.choice(40, size, replace=False)) % world.people
        time, amount = _circle(world, members, world.amounts(130, 0.9, 1)[0], 0.3, 6 * HOUR)
        channel = world.channels(size, instant=0.6, transfer=0.3, wallet=0.1)
        rows = _rows("settlement", members, np.roll(members, -1), time, world.rounded(amount, 0.5), channel)
        frames.append(rows if world.draw.random() < 0.4 else rows[:-1])
    return pd.concat(frames)


def _poolings(world: World) -> pd.DataFrame:
    """Companies of a group send cash around within hours, every month."""
    frames = []
    for _ in range(world.count(0.25)):
        size = world.whole(3, 5)
        members = world.people + world.draw.choice(world.accounts - world.people, size, replace=False)
        for _ in range(3):
            time, amount = _circle(world, members, world.amounts(900, 1.0, 1)[0], 0.05, 3 * HOUR)
            channel = world.channels(size, transfer=0.7, instant=0.3)
            frames.append(_rows("pooling", members, np.roll(members, -1), time, amount, channel))
    return pd.concat(frames)


def _trips(world: World) -> pd.DataFrame:
    """Travelers pay many shops that are new to them within a day: the counterpart of a stolen card."""
    frames = []
    for traveler in world.active_people(world.count(2)):
        size = world.whole(3, 10)
        shops = world.shops(np.full(size, traveler), abroad=0.8)
        time = world.moments(1)[0] + np.sort(world.draw.uniform(0, 14 * HOUR, size))
        channel = world.channels(size, card=0.75, wallet=0.1, online=0.15)
        frames.append(_rows("trip", traveler, shops, time, world.amounts(50, 1.0, size), channel))
    return pd.concat(frames)


def _rings(world: World) -> pd.DataFrame:
    frames = []
    for _ in range(world.count(0.65)):
        size = world.whole(3, 7)
        first = world.active_people(1)
        if world.draw.random() < 0.5:
            members = (first + world.draw.choice(30, size, replace=False)) % world.people
        else:
            members = np.append(first, np.setdiff1d(world.strangers(np.repeat(first, size - 1)), first))
        amount = world.amounts(140, 0.9, 1)[0]
        for _ in range(world.draw.choice([1, 1, 1, 2, 3])):
            time, amounts = _circle(world, members, amount * world.draw.uniform(0.8, 1.25), 0.08, 3.5 * HOUR)
            channel = world.channels(len(members), instant=0.5, transfer=0.32, wallet=0.18)
            typed = world.rounded(amounts, 0.4)
            frames.append(_rows("ring", members, np.roll(members, -1), time, typed, channel))
    return pd.concat(frames)


def _mules(world: World) -> pd.DataFrame:
    """Several mules pay the same few accounts, which are ordinary otherwise."""
    frames = []
    mules = np.append(world.draw.choice(world.sellers, world.count(0.35)), world.active_people(world.count(0.15)))
    behind = world.draw.choice(world.sellers, max(2, len(mules) // 3))
    for mule in mules:
        size = world.whole(3, 13)
        victims = np.setdiff1d(world.strangers(np.full(size, mule)), mule)
        time = world.moments(1)[0] + world.draw.uniform(0, 2.5 * DAY, len(victims))
        amount = world.rounded(world.amounts(75, 0.9, len(victims)), 0.5)
        channel = world.channels(len(victims), instant=0.5, transfer=0.32, wallet=0.18)
        frames.append(_rows("mule", victims, mule, time, amount, channel))
        if world.draw.random() < 0.5:
            payees, parts = np.setdiff1d(world.draw.choice(behind, 1), mule), np.ones(1)
        else:
            payees = np.setdiff1d(world.strangers(np.full(world.draw.integers(2, 6), mule)), mule)
            parts = world.draw.dirichlet(np.full(len(payees), 5.0))
        sent = 0.92 * amount.sum() * parts[: len(payees)]
        last = time.max() + world.draw.exponential(5 * HOUR, len(payees))
        channel = world.channels(len(payees), instant=0.5, transfer=0.5)
        frames.append(_rows("mule", mule, payees, last, world.rounded(sent, 0.3), channel))
    return pd.concat(frames)


def _stolen_cards(world: World, count: int, shopping: pd.DataFrame) -> pd.DataFrame:
    """Payments to shops and people that the owner of the card does not pay otherwise; a few people cash out often."""
    frames = []
    fences = world.draw.choice(world.sellers, max(2, count // 8))
    usual = {payer: frame.to_numpy() for payer, frame in shopping.groupby("source")["target"]}
    for owner in world.active_people(count):
        size = world.whole(3, 9)
        shops = world.shops(np.full(3 * size, owner), abroad=0.15)
        new = np.setdiff1d(shops, usual.get(owner, np.empty(0, np.int64)))
        payees = world.draw.permutation(new)[:size]
        cash = world.draw.random(len(payees)) < 0.12
        payees = np.where(cash & (owner != fences[0]), world.draw.choice(fences, len(payees)), payees)
        time = world.moments(1)[0] + np.sort(world.draw.uniform(0, 5 * HOUR, len(payees)))
        amount = world.amounts(42, 1.0, len(payees))
        channel = world.channels(len(payees), card=0.6, wallet=0.15, online=0.25)
        frames.append(_rows("stolen card", owner, payees, time, amount, channel))
    return pd.concat(frames)


def _finish(world: World, history: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Order by time, pay in a currency, and give the accounts ids that tell nothing."""
    draw = world.draw
    history = history[history["source"] != history["target"]]
    history = history[history["time"] < DAYS * DAY].sort_values("time", kind="stable", ignore_index=True)
    source, target = history["source"].to_numpy(), history["target"].to_numpy()
    names = list(CURRENCIES)
    payer = draw.random(len(history)) < 0.9
    money = pd.Series(np.where(payer, world.country[source], world.country[target])).map(dict(enumerate(names)))
    currency = money.map(CURRENCIES)
    amount = np.maximum(0.01, np.round(history["amount"] * currency.map(RATES), 2))
    reported = history["scheme"].isin(FRAUD) & (draw.random(len(history)) >= UNREPORTED)
    ids = draw.permutation(world.accounts)
    edges = pd.DataFrame(
        {
            "source": ids[source],
            "target": ids[target],
            "time": np.rint(history["time"]).astype(np.int64),
            "amount": amount,
            "currency": currency,
            "channel": history["channel"],
            "is_fraud": reported.astype(np.int64),
            "scheme": history["scheme"],
        }
    )
    opened = np.rint(30 + draw.exponential(1_400, world.accounts)).astype(np.int64)
    nodes = pd.DataFrame(
        {
            "id": ids,
            "country": np.array(names)[world.country],
            "kind": np.where(np.arange(world.accounts) < world.people, "personal", "business"),
            "opened": opened,
        }
    )
    return nodes.sort_values("id", ignore_index=True), edges


def main() -> None:
    """Write a simulated history of payments as two tables."""
    parser = ArgumentParser(description=main.__doc__)
    parser.add_argument("--to", type=Path, required=True, help="directory for nodes.csv and edges.csv")
    parser.add_argument("--payments", type=int, default=200_000, help="number of payments")
    parser.add_argument("--seed", type=int, default=0, help="of everything")
    given = parser.parse_args()
    given.to.mkdir(parents=True, exist_ok=True)
    for name, frame in simulate_payments(given.payments, given.seed).frames().items():
        frame.to_csv(given.to / f"{name}.csv", index=False)


if __name__ == "__main__":
    main()
