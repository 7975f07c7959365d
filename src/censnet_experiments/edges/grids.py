"""Power grids and water networks: data and answers on nodes and on edges, many samples of one network.

`read_grid` reads the shipped samples, and `generate_power` makes samples of other power grids with pandapower, which is
not needed otherwise; `read_generated` keeps them in the cache.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from censnet.data.datasets.download import cache_dir
from censnet.data.tables.files import Tables
from censnet.errors import DataError
from censnet.files import atomic_file
from censnet.ops.arrays import Array
from censnet_experiments.edges.files import find_edge_file

GRIDS = ("case57", "case118", "Net3", "ky4")
POWER_CASES = ("case14", "case30", "case39", "case57", "case89pegase")
BUS = ("p_in", "q_in", "type", "v_set", "gs", "bs", "Vm*", "Va*")
BRANCH = ("from", "to", "r", "x", "b", "tap", "shift", "status", "P*", "Q*", "P_dc")
PEERS = ("P_dc",)  # the answer of a simpler model: to compare with, never an input
CATEGORIES = ("type", "kind")
TRIES = 100  # draws for one sample, of which the first that converges is kept


@dataclass(frozen=True, eq=False)
class GridData:
    """Samples of one network as tables, and what their columns are for.

    Args:
        tables: `graphs`: graph (the sample's number); `nodes`: graph, id; `edges`: graph, source, target; and inputs,
            answers and peers.
        node_inputs, edge_inputs: columns that may be seen.
        node_answers, edge_answers: columns to be predicted. Flows are oriented: from source to target.
        peers: columns of edges that are neither.
    """

    tables: Tables
    node_inputs: list[str]
    node_answers: list[str]
    edge_inputs: list[str]
    edge_answers: list[str]
    peers: list[str]


def read_grid(name: str) -> GridData:
    """Read the samples of a network in `GRIDS`."""
    if name not in GRIDS:
        raise DataError(f"no grid is called {name!r} (there are {', '.join(GRIDS)})")
    with np.load(find_edge_file(f"{name}.npz"), allow_pickle=False) as arrays:
        node, edge = ("bus", "branch") if "bus" in arrays else ("node", "link")
        columns = [[str(column) for column in arrays[f"{side}_cols"]] for side in (node, edge)]
        return grid_data(arrays[node], arrays[edge], *columns)


def grid_data(nodes: Array, edges: Array, node_columns: list[str], edge_columns: list[str]) -> GridData:
    """Tables for (samples, nodes, columns) and (samples, edges, columns); `*` at the end of a name marks an answer."""
    if edge_columns[:2] != ["from", "to"] or len(nodes) != len(edges):
        raise DataError(f"edges begin with {edge_columns[:2]}, expected ['from', 'to'], and as many samples as nodes")
    samples = np.arange(len(nodes))
    found, roles = {}, {}
    for table, values, names in (("nodes", nodes, node_columns), ("edges", edges, edge_columns)):
        flat = values.reshape(-1, values.shape[-1])
        frame = pd.DataFrame({name.rstrip("*"): flat[:, place] for place, name in enumerate(names)})
        for name in CATEGORIES:
            if name in frame:
                frame[name] = "kind " + frame[name].astype(np.int64).astype(str)
        frame.insert(0, "graph", np.repeat(samples, values.shape[1]))
        if table == "nodes":
            frame.insert(1, "id", np.tile(np.arange(values.shape[1]), len(samples)))
        else:
            frame = frame.rename(columns={"from": "source", "to": "target"})
            frame = frame.astype({"source": np.int64, "target": np.int64})
        answers = [name[:-1] for name in names if name.endswith("*")]
        keys = ("graph", "id", "source", "target")
        found[table] = frame
        roles[table] = [str(name) for name in frame if name not in (*keys, *answers, *PEERS)], answers
    tables = Tables(found["nodes"], found["edges"], pd.DataFrame({"graph": samples}))
    peers = [name for name in PEERS if name in found["edges"]]
    return GridData(tables, *roles["nodes"], *roles["edges"], peers)


def generate_power(case: str, samples: int, seed: int) -> GridData:
    """Draw samples of a power grid of pandapower, with the columns of `read_grid("case118")`.

    In each sample all loads, active and reactive, are multiplied by one U(0.7, 1.1) and each by its own U(0.7, 1.3);
    generators by the same first number and their own U(0.8, 1.2); r of each line by its own U(0.6, 1.6), and x by the
    same number and U(0.9, 1.1). Every second sample has one line out, never one that cuts the grid. A sample whose
    power flow does not converge is drawn again. The output of the slack is an answer, so its input is 0. `P_dc` is the
    flow of the DC approximation.

    Args:
        case: name of a network of pandapower, such as those in `POWER_CASES`.
        samples: how many.
        seed: of the draws.

    Raises:
        ImportError: pandapower is not installed.
    """
    bus, branch = power_arrays(case, samples, seed)
    return grid_data(bus, branch, list(BUS), list(BRANCH))


def read_generated(case: str, samples: int, seed: int) -> GridData:
    """The samples of `generate_power`, from the cache if they are there; otherwise they are generated and kept."""
    path = cache_dir() / "edges" / f"{case}-{samples}-{seed}.npz"
    if not path.exists():
        bus, branch = power_arrays(case, samples, seed)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as file:
            np.savez_compressed(file, bus=bus, branch=branch)
    with np.load(path, allow_pickle=False) as arrays:
        return grid_data(arrays["bus"], arrays["branch"], list(BUS), list(BRANCH))


def join_grids(grids: Sequence[GridData]) -> GridData:
    """The samples of several grids with the same columns as those of one; they are numbered through."""
    frames: dict[str, list[pd.DataFrame]] = {"graphs": [], "nodes": [], "edges": []}
    count = 0
    for grid in grids:
        for table, frame in grid.tables.frames().items():
            frames[table].append(frame.assign(graph=frame["graph"] + count))
        count += len(grid.tables.frames()["graphs"])
    joined = {table: pd.concat(some, ignore_index=True) for table, some in frames.items()}
    return replace(grids[0], tables=grids[0].tables.with_frames(joined))


def power_arrays(case: str, samples: int, seed: int) -> tuple[Array, Array]:
    """The samples of `generate_power` as arrays: (samples, buses, columns of `BUS`) and likewise for `BRANCH`."""
    try:
        pandapower: Any = importlib.import_module("pandapower")
        networks: Any = importlib.import_module("pandapower.networks")
    except ImportError:
        raise ImportError(
            "grids are generated by pandapower, which is not installed: pip install 'censnet[grids]'"
        ) from None
    logging.getLogger("pandapower").setLevel(logging.ERROR)
    draw = np.random.default_rng(seed)
    base = getattr(networks, case)()
    found = [_sample(pandapower, base, draw, number % 2 == 1) for number in range(samples)]
    buses, branches = zip(*found, strict=True)
    return np.stack(buses).astype(np.float32), np.stack(branches).astype(np.float32)


def _sample(pandapower: Any, base: Any, draw: np.random.Generator, outage: bool) -> tuple[Array, Array]:
    for _ in range(TRIES):
        net = deepcopy(base)
        level = draw.uniform(0.7, 1.1)
        for column in ("p_mw", "q_mvar"):
            net.load[column] *= level * draw.uniform(0.7, 1.3, len(net.load))
        for table in (net.gen, net.sgen):
            table["p_mw"] *= level * draw.uniform(0.8, 1.2, len(table))
        factor = draw.uniform(0.6, 1.6, len(net.line))
        net.line["r_ohm_per_km"] *= factor
        net.line["x_ohm_per_km"] *= factor * draw.uniform(0.9, 1.1, len(net.line))
        if outage:
            net.line.loc[draw.choice(net.line.index), "in_service"] = False
        try:
            pandapower.rundcpp(net)
            dc = net._ppc["branch"][:, 13].real.copy()
            pandapower.runpp(net, numba=False)
        except pandapower.LoadflowNotConverged:
            continue
        bus, branch = net._ppc["bus"].real, net._ppc["branch"].real
        if len(branch) == len(dc) and np.isfinite(bus[:, 7]).all() and _is_connected(branch, len(bus)):
            return _bus_columns(net, bus), np.column_stack([branch[:, [0, 1, 2, 3, 4, 8, 9, 10, 13, 14]], dc])
    raise DataError(f"none of {TRIES} draws has a power flow that converges, expected one")


def _bus_columns(net: Any, bus: Array) -> Array:
    """The inputs and answers of the buses, in the order of the solver."""
    place = net._pd2ppc_lookups["bus"]
    power, voltage = np.zeros((len(bus), 2)), np.zeros(len(bus))
    for table, sign in ((net.load, -1), (net.sgen, 1)):
        used = table[table["in_service"]]
        np.add.at(power, place[used["bus"]], sign * used[["p_mw", "q_mvar"]].to_numpy())
    used = net.gen[net.gen["in_service"]]
    np.add.at(power[:, 0], place[used["bus"]], used["p_mw"].to_numpy())
    voltage[place[used["bus"]]] = used["vm_pu"]
    voltage[place[net.ext_grid["bus"]]] = net.ext_grid["vm_pu"]
    power[bus[:, 1] == 3, 0] = 0
    return np.column_stack([power, bus[:, 1], voltage, bus[:, 4], bus[:, 5], bus[:, 7], bus[:, 8]])


def _is_connected(branch: Array, num_buses: int) -> bool:
    used = branch[branch[:, 10] == 1]
    ends = used[:, 0].astype(np.int64), used[:, 1].astype(np.int64)
    return bool(connected_components(coo_matrix((np.ones(len(used)), ends), (num_buses, num_buses)))[0] == 1)
