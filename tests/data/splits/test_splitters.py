from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import write_splits

from censnet.data.molecules.featurize import read_smiles
from censnet.data.splits.links import LinkSplit, link_rows, links, read_links
from censnet.data.splits.split_file import Split, read_splits
from censnet.data.splits.splitters import by_column, by_time, label_rate, ratio, scaffold, stratified
from censnet.errors import DataError
from censnet.ops.arrays import sorted_unique
from censnet.ops.graph import Graph
from censnet.ops.pairs import NodePairs, find_bipartition, sample_non_edges


def equal(one: Split, two: Split) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.parts.values(), two.parts.values(), strict=True))


def graph_of(ends: list[tuple[int, int]], num_nodes: int, owner: list[int] | None = None) -> Graph:
    columns = torch.tensor(ends, dtype=torch.long).reshape(-1, 2).t()
    edges = torch.arange(len(ends), dtype=torch.float32).unsqueeze(1)
    groups = {} if owner is None else {"owner": torch.tensor(owner), "num_graphs": max(owner) + 1}
    return Graph(torch.ones(num_nodes, 1), edges, columns, **groups)


# -- few labels -------------------------------------------------------------------------------------------------------


def test_label_rate_is_the_released_rule_on_cora_s_sizes():
    labels = np.repeat(range(7), [351, 217, 418, 818, 426, 298, 180])  # Cora: 2,708 papers in 7 classes
    split = label_rate(np.random.default_rng(0).permutation(labels), 0.03)
    each = round(0.03 * 2708 / 7)
    assert len(split.train) == 7 * each
    assert len(split.validation) == round(0.47 * 2708)
    assert len(split.train) + len(split.validation) + len(split.test) == 2708


def test_label_rate_gives_every_class_the_same_number_of_rows():
    labels = pd.Series(["a"] * 500 + ["b"] * 100 + ["c"] * 30)
    split = label_rate(labels, 0.05, seed=4)
    assert labels.iloc[split.train.numpy()].value_counts().to_dict() == {"a": 10, "b": 10, "c": 10}


def test_label_rate_leaves_rows_without_a_label_out():
    labels = pd.Series(["a", None, "b"] * 40)
    split = label_rate(labels, 0.1)
    assert labels.iloc[torch.cat(list(split.parts.values())).numpy()].notna().all()
    assert sum(map(len, split.parts.values())) == 80


@pytest.mark.parametrize(
    ("labels", "rate", "message"),
    [
        (["a", "b"] * 50, 0.5, "rate is 0.5"),
        (["a", "b"] * 50, 0.001, "less than one row for each"),
        (["a"] * 99 + ["b"], 0.1, "class 'b' has 1 labeled rows, expected 5"),
        ([None, None], 0.1, "no row has a label"),
    ],
)
def test_a_label_rate_that_cannot_be_met_says_why(labels, rate, message):
    with pytest.raises(ValueError, match=message):
        label_rate(labels, rate)


# -- at random --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(
    st.integers(3, 300),
    st.tuples(st.floats(0.1, 1), st.floats(0.1, 1), st.floats(0.1, 1)),
    st.integers(0, 2**32),
)
@settings(max_examples=60, deadline=None)
def test_ratio_puts_each_row_in_one_part_of_the_right_size(num_rows, fractions, seed):
    split = ratio(num_rows, fractions, seed)
    assert torch.cat(list(split.parts.values())).sort().values.tolist() == list(range(num_rows))
    for rows, share in zip(split.parts.values(), np.array(fractions) / sum(fractions), strict=True):
        assert len(rows) >= 1
        assert abs(len(rows) - share * num_rows) <= 1.5


def test_rows_of_one_group_go_together_and_bad_rows_nowhere():
    groups = np.random.default_rng(1).integers(-1, 40, 300)
    split = ratio(300, groups=groups, seed=2)
    found = [set(groups[rows.numpy()]) for rows in split.parts.values()]
    assert not found[0] & found[1]
    assert not found[0] & found[2]
    assert not found[1] & found[2]
    assert set.union(*found) == set(range(40))


def test_stratified_keeps_the_share_of_every_class():
    labels = pd.Series(["x"] * 700 + ["y"] * 250 + ["z"] * 50)
    split = stratified(labels, (0.6, 0.2, 0.2), seed=5)
    for rows, share in zip(split.parts.values(), (0.6, 0.2, 0.2), strict=True):
        counts = labels.iloc[rows.numpy()].value_counts()
        assert counts.to_dict() == {"x": 700 * share, "y": 250 * share, "z": 50 * share}


def test_stratified_deals_many_tiny_classes_out_in_the_right_shares():
    split = stratified(np.repeat(np.arange(100), 3).astype(str), (0.8, 0.1, 0.1))
    assert [len(rows) for rows in split.parts.values()] == [240, 30, 30]


def test_stratified_puts_a_class_of_one_row_into_training():
    split = stratified(["a"] * 50 + ["alone"])
    assert 50 in split.train.tolist()


def test_stratified_balances_sparse_tasks_with_blanks():
    rng = np.random.default_rng(0)
    rates = [0.02, 0.05, 0.1, 0.3]
    table = pd.DataFrame({f"t{n}": (rng.random(4000) < rate).astype(float) for n, rate in enumerate(rates)})
    table = table.mask(rng.random(table.shape) < 0.3)
    split = stratified(table, seed=1)
    for task in table:
        total = table[task].sum()
        for rows, share in zip(split.parts.values(), (0.8, 0.1, 0.1), strict=True):
            assert abs(table[task].iloc[rows.numpy()].sum() - share * total) <= max(2, 0.03 * total)
    assert abs(len(split.test) - 0.1 * table.notna().any(axis=1).sum()) <= 8


def test_stratified_cuts_a_number_into_ten_classes():
    values = pd.Series(np.random.default_rng(3).normal(size=1000))
    split = stratified(values)
    assert abs(values.iloc[split.test.numpy()].median() - values.median()) < 0.15
    assert [len(rows) for rows in split.parts.values()] == [800, 100, 100]


def test_each_split_has_its_own_seed_and_leaves_global_state_alone():
    labels = ["a", "b"] * 100
    graph = graph_of([(i, (i * 7 + 1) % 50) for i in range(50)], 50)
    rules = [
        lambda seed: ratio(200, seed=seed),
        lambda seed: stratified(labels, seed=seed),
        lambda seed: label_rate(labels, 0.1, seed=seed),
        lambda seed: links(graph, seed=seed).rows,
    ]
    for rule in rules:
        np.random.seed(0)
        torch.manual_seed(0)
        before = np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
        first = rule(3)
        assert (np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()) == before
        np.random.seed(1)
        torch.manual_seed(1)
        assert equal(first, rule(3))
        assert not equal(first, rule(4))


# -- scaffolds, columns, time -----------------------------------------------------------------------------------------

BENZENES = [f"c1ccccc1{'C' * n}" for n in range(1, 9)]
PYRIDINES = [f"c1ccncc1{'C' * n}" for n in range(1, 5)]
ALONE = ["C1CC1C", "C1CCC1C", "C1CCCC1C", "C1CCCCC1C"]


def test_a_scaffold_is_in_one_part_and_the_largest_trains():
    split = scaffold(read_smiles([*ALONE, *PYRIDINES, *BENZENES], scaffolds=True).scaffolds, (0.5, 0.25, 0.25))
    assert split.train.tolist() == list(range(8, 16))
    assert split.validation.tolist() == list(range(4, 8))
    assert split.test.tolist() == [0, 1, 2, 3]


def test_the_seed_of_a_scaffold_split_decides_among_equals_only():
    found = read_smiles([*ALONE, *PYRIDINES, *BENZENES], scaffolds=True).scaffolds
    splits = [scaffold(found, (0.75, 0.125, 0.125), seed=seed) for seed in range(12)]
    assert all(split.train.tolist() == list(range(4, 16)) for split in splits)
    assert len({tuple(split.test.tolist()) for split in splits}) > 1
    assert equal(splits[0], scaffold(found, (0.75, 0.125, 0.125), seed=0))


def test_a_smiles_that_is_no_molecule_is_in_no_part():
    split = scaffold(read_smiles([*BENZENES, "not a molecule"], scaffolds=True).scaffolds, (0.8, 0.1, 0.1))
    assert 8 not in torch.cat(list(split.parts.values())).tolist()


def test_a_column_may_spell_the_parts_in_several_ways():
    split = by_column(["Train", "VAL", " valid ", "validation", "test", "TRAIN"])
    assert [rows.tolist() for rows in split.parts.values()] == [[0, 5], [1, 2, 3], [4]]


@pytest.mark.parametrize("value", ["dev", None, 3, ""])
def test_another_word_in_the_column_is_an_error_that_names_the_row(value):
    with pytest.raises(DataError, match=r"nodes.csv, row 3, column fold: .*expected train, validation or test"):
        by_column(pd.Series(["train", "test", value], dtype=object), "nodes.csv", "fold")


@given(st.lists(st.integers(0, 12), min_size=3, max_size=80).filter(lambda times: len(set(times)) > 2))
@settings(max_examples=60, deadline=None)
def test_equal_times_never_straddle_a_boundary_and_no_part_is_newer_than_the_next(times):
    split = by_time(times, (0.6, 0.2, 0.2))
    parts = [[times[row] for row in rows.tolist()] for rows in split.parts.values()]
    assert all(parts)
    assert max(parts[0]) < min(parts[1])
    assert max(parts[1]) < min(parts[2])
    assert sum(map(len, parts)) == len(times)


@pytest.mark.parametrize(
    "times",
    [
        pd.to_datetime(["2024-01-05", "2023-02-01", "2024-06-01", "2022-01-01"]),
        ["2024-01-05", "2023-02-01", "2024-06-01T08:00", "2022-01-01"],
        ["11", "2", "100", "1"],
        pd.Series(["2024-01-05", "2023-02-01", "2024-06-01", "2022-01-01"], dtype=pd.ArrowDtype(pa.string())),
        pd.Series([date(2024, 1, 5), date(2023, 2, 1), date(2024, 6, 1), date(2022, 1, 1)]),
    ],
)
def test_times_may_be_dates_text_or_numbers_in_text(times):
    split = by_time(times, (0.5, 0.25, 0.25))
    assert [rows.tolist() for rows in split.parts.values()] == [[1, 3], [0], [2]]


def test_a_row_without_time_is_named_and_so_are_too_few_times():
    with pytest.raises(DataError, match=r"edges.csv, row 2, column when: 'soon' is not a time"):
        by_time(["2024-01-01", "soon", "2024-01-02"], file="edges.csv", column="when")
    with pytest.raises(ValueError, match="2 different times"):
        by_time([1, 1, 2, 2])


# -- links ------------------------------------------------------------------------------------------------------------


@st.composite
def edge_lists(draw: st.DrawFn) -> tuple[list[tuple[int, int]], int]:
    num_nodes = draw(st.integers(6, 20))
    node = st.integers(0, num_nodes - 1)
    return draw(st.lists(st.tuples(node, node), min_size=4, max_size=60)), num_nodes


def check_links(graph: Graph, split: LinkSplit) -> None:
    ends = graph.ends.t().tolist()
    every = {frozenset(pair) for pair in ends}
    seen = {frozenset(ends[row]) for row in split.rows.train.tolist()}
    for part in ("validation", "test"):
        positive = [frozenset(pair) for pair in getattr(split, f"{part}_links").t().tolist()]
        negative = [frozenset(pair) for pair in getattr(split, f"{part}_negatives").t().tolist()]
        rows = {frozenset(ends[row]) for row in split.rows.parts[part].tolist()}
        assert len(positive) == len(negative) > 0
        assert set(positive) == rows
        assert len(positive) == len(set(positive))
        assert not set(positive) & seen
        assert not set(negative) & every
        assert all(len(pair) == 2 for pair in positive + negative)
    pairs = torch.cat([split.validation_negatives, split.test_negatives], dim=1).t().tolist()
    assert len({tuple(pair) for pair in pairs}) == len(pairs)
    assert sum(map(len, split.rows.parts.values())) == graph.num_edges
    seen_by_messages = {frozenset(pair) for pair in split.message_graph(graph).ends.t().tolist()}
    hidden = {
        frozenset(pair) for part in ("validation", "test") for pair in getattr(split, f"{part}_links").t().tolist()
    }
    assert not seen_by_messages & hidden


@given(edge_lists(), st.integers(0, 10**6))
@settings(max_examples=80, deadline=None)
def test_hidden_links_are_hidden_with_their_parallels_and_negatives_are_none(edges, seed):
    graph = graph_of(*edges)
    pairs = {frozenset(pair) for pair in edges[0] if pair[0] != pair[1]}
    hidden = max(1, len(pairs) // 20) + max(1, len(pairs) // 10)
    if len(pairs) <= hidden:
        with pytest.raises(ValueError, match="linked pairs, expected at least 3"):
            links(graph, seed=seed)
    elif graph.num_nodes * (graph.num_nodes - 1) // 2 - len(pairs) < hidden:
        with pytest.raises(ValueError, match="pairs without a link were asked for"):
            links(graph, seed=seed)
    else:
        check_links(graph, links(graph, seed=seed))


def test_cora_s_sizes_are_those_of_the_variational_auto_encoder():
    rng = np.random.default_rng(0)
    pairs = {tuple(sorted(pair)) for pair in rng.integers(0, 2708, (6000, 2)).tolist() if pair[0] != pair[1]}
    graph = graph_of(sorted(pairs)[:5278], 2708)
    split = links(graph)
    assert (split.validation_links.shape[1], split.test_links.shape[1]) == (263, 527)
    assert len(split.rows.train) == 5278 - 263 - 527
    check_links(graph, split)


def test_the_features_of_seen_edges_are_their_own():
    graph = graph_of([(i, (i + 1) % 30) for i in range(30)], 30)
    split = links(graph)
    assert split.message_graph(graph).edges.squeeze(1).long().tolist() == split.rows.train.tolist()


def test_loops_are_seen_and_never_asked_about():
    graph = graph_of([(i, i) for i in range(30)] + [(i, i + 1) for i in range(29)], 30)
    split = links(graph)
    assert set(range(30)) <= set(split.rows.train.tolist())


def test_in_a_union_negatives_join_nodes_of_one_graph():
    ring = [(i, (i + 1) % 10) for i in range(10)]
    owner = [0, 1, 2] * 10  # not even contiguous
    graph = graph_of([(3 * i + k, 3 * j + k) for k in range(3) for i, j in ring], 30, owner)
    split = links(graph)
    check_links(graph, split)
    for pairs in (split.validation_negatives, split.test_negatives):
        assert torch.equal(graph.owner[pairs[0]], graph.owner[pairs[1]])


def negative_edges(graph: Graph, count: int, seed: int = 0) -> torch.Tensor:
    """Distinct pairs of nodes without an edge, uniformly at random. (2, count)"""
    pairs, ends = NodePairs.of(graph), graph.ends.numpy()
    first, second = ends[:, ends[0] != ends[1]]
    linked = sorted_unique(pairs.rank(first, second))
    return torch.from_numpy(pairs.pair(sample_non_edges(pairs, linked, count, np.random.default_rng(seed))))


def test_too_few_negatives_are_said_clearly():
    complete = [(i, j) for i in range(8) for j in range(i)]
    with pytest.raises(ValueError, match="3 pairs without a link were asked for, but only 0 of the 28 pairs"):
        links(graph_of(complete, 8))
    graph = graph_of(complete[:-2], 8)
    found = negative_edges(graph, 2)
    assert sorted(map(sorted, found.t().tolist())) == sorted(sorted(pair) for pair in complete[-2:])
    with pytest.raises(ValueError, match="only 2 of the 28"):
        negative_edges(graph, 3)


def test_negatives_are_uniform():
    graph = graph_of([(0, 1), (2, 3), (4, 5)], 6)
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(600):
        pair = tuple(negative_edges(graph, 1, seed).flatten().tolist())
        counts[pair] = counts.get(pair, 0) + 1
    assert len(counts) == 12
    assert min(counts.values()) > 25
    assert max(counts.values()) < 85


def ratings(users: int = 12, items: int = 9) -> list[tuple[int, int]]:
    """Users with even numbers rate what has odd ones."""
    rng = np.random.default_rng(0)
    return [(2 * u, 2 * i + 1) for u in range(users) for i in range(items) if rng.random() < 0.3]


def test_where_nodes_are_of_two_kinds_negatives_join_one_of_each():
    edges = ratings()
    graph = graph_of([*edges, edges[0]], 26)  # one is rated twice, and some nodes are in no edge
    split = links(graph)
    check_links(graph, split)
    touched = set(graph.ends.flatten().tolist())
    for pairs in (split.validation_negatives, split.test_negatives, negative_edges(graph, 20)):
        assert all((a + b) % 2 == 1 for a, b in pairs.t().tolist())
        assert set(pairs.flatten().tolist()) <= touched
    sides = find_bipartition(graph)
    assert all(side == (node % 2 if node in touched else -1) for node, side in enumerate(sides.tolist()))


@pytest.mark.parametrize(
    "edges",
    [
        [(0, 1), (2, 3), (4, 5), (6, 7)],
        [(0, i) for i in range(1, 9)],
        [(i, j) for i in range(4) for j in range(4, 8)],
        [*ratings(), (1, 0)],
        [*ratings(), (3, 3)],
        [],
    ],
    ids=["couples", "a star", "all pairs", "one the other way", "a loop", "no edge"],
)
def test_nodes_are_not_of_two_kinds_by_chance(edges):
    assert find_bipartition(graph_of(edges, 26)) is None


@pytest.mark.slow
def test_a_million_edges_split_within_the_memory_of_a_few_edge_lists():
    torch.manual_seed(0)
    ends = torch.randint(200_000, (2, 1_000_000))
    graph = Graph(torch.ones(200_000, 1), torch.ones(1_000_000, 1), ends)
    split = links(graph)  # 200,000 x 200,000 booleans would be 40 GB
    keys = {
        part: getattr(split, part).amin(0) * 200_000 + getattr(split, part).amax(0)
        for part in ("test_links", "test_negatives")
    }
    linked = ends.amin(0) * 200_000 + ends.amax(0)
    assert torch.isin(keys["test_links"], linked).all()
    assert not torch.isin(keys["test_negatives"], linked).any()
    assert not torch.isin(keys["test_links"], linked[split.rows.train]).any()


# -- the file ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(st.lists(st.integers(-1, 2), min_size=1, max_size=40), st.lists(st.integers(-1, 2), min_size=1, max_size=40))
@settings(max_examples=30, deadline=None)
def test_a_split_comes_back_from_its_file(tmp_path_factory, nodes, edges):
    path = tmp_path_factory.mktemp("run") / "splits.csv"
    splits = {"nodes": Split.of(nodes), "edges": Split.of(edges)}
    ids = {"nodes": pd.DataFrame({"id": [f"00{row}, 'x'" for row in range(len(nodes))]})}
    write_splits(splits, path, ids)
    back = read_splits(path, ids)
    for table, split in splits.items():
        if sum(map(len, split.parts.values())):
            assert equal(back[table], split)


def test_the_file_keeps_the_users_ids_and_counts_rows_from_one(tmp_path):
    ids = {"edges": pd.DataFrame({"source": ["007", "b"], "target": ["b", "c"], "split": ["x", "y"]})}
    write_splits({"edges": Split.of([2, 0])}, tmp_path / "splits.csv", ids)
    assert (tmp_path / "splits.csv").read_text().replace('"', "").splitlines() == [
        "table,row,split,source,target,split_",
        "edges,1,test,007,b,x",
        "edges,2,train,b,c,y",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("table,row,split\nnodes,1,train\nnodes,2,tra\n", r"splits.csv, row 2, column split: found 'tra'"),
        ("table,row,split\nnodes,0,train\n", r"splits.csv, row 1, column row: found '0', expected the number of a row"),
        ("table,row,split\nnodes,1.5,train\n", r"row 1, column row: found '1.5'"),
        ("table,row,split\nnodes,1,train\nnodes,,test\n", r"row 2, column row: found nothing"),
        ("table,row,split\nnodes,1,train\nnodes,1,test\n", r"row 2, column row: .* is in the file already"),
        ("table,row,split\nnodes,1,train\n,2,test\n", r"row 2, column table: no name of a table"),
        ("table,row,split\nnodes,1,train\nnodes,2\n", r"splits.csv: not a table of splits: .*Row #3"),
        ("table,row\nnodes,1\n", r"splits.csv: no column split"),
        ("", r"splits.csv: not a table of splits"),
        ("table,row,split\nnodes,\x00,train\n", r"row 1, column row"),
        ("table,row,split\nnodes,999999999999999999999,train\n", r"row 1, column row"),
    ],
)
def test_a_damaged_file_is_an_error_that_names_the_row(tmp_path, text, message):
    (tmp_path / "splits.csv").write_bytes(text.encode())
    with pytest.raises(DataError, match=message):
        read_splits(tmp_path / "splits.csv")


def test_a_missing_file_and_bytes_that_are_no_text_are_errors_too(tmp_path):
    with pytest.raises(DataError, match="there is no such file"):
        read_splits(tmp_path / "nowhere.csv")
    (tmp_path / "splits.csv").write_bytes(b"table,row,split\nnodes,1,tr\xff\xfe\n")
    with pytest.raises(DataError, match=r"splits.csv"):
        read_splits(tmp_path / "splits.csv")


def test_a_table_that_was_reordered_since_is_noticed(tmp_path):
    ids = pd.DataFrame({"id": ["a", "b", "c"]})
    write_splits({"nodes": Split.of([0, 1, 2])}, tmp_path / "splits.csv", {"nodes": ids})
    with pytest.raises(DataError, match=r"row 2, column id: 'b' in the file, but row 2 of nodes is now 'c'"):
        read_splits(tmp_path / "splits.csv", {"nodes": ids.iloc[[0, 2, 1]]})
    with pytest.raises(DataError, match=r"row 3, column row: row 3 of nodes, which has 2 rows"):
        read_splits(tmp_path / "splits.csv", {"nodes": ids.iloc[:2]})


@pytest.mark.slow
@given(edge_lists(), st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_a_link_split_comes_back_from_its_file_beside_another(tmp_path_factory, edges, seed):
    graph = graph_of([*edges[0], *((i, i + 1) for i in range(5))], edges[1] + 20)
    path: Path = tmp_path_factory.mktemp("run") / "splits.csv"
    split, labels = links(graph, seed=seed), ratio(graph.num_nodes)
    names = pd.Series([f"n{number}" for number in range(graph.num_nodes)])
    write_splits({"nodes": labels}, path, more=[link_rows(split, graph, node_ids=names)])
    back = read_links(path)
    assert equal(back.rows, split.rows)
    for name in ("validation_links", "validation_negatives", "test_links", "test_negatives"):
        assert torch.equal(getattr(back, name), getattr(split, name))
    assert equal(read_splits(path)["nodes"], labels)


def test_a_link_split_of_doubled_rows_names_the_users_rows(tmp_path):
    graph = graph_of([(i, (i + 1) % 20) for i in range(20)], 20)
    rows = torch.cat([torch.arange(20), torch.arange(20), torch.tensor([-1])])  # twice, and a bad row
    split = links(graph)
    write_splits({}, tmp_path / "splits.csv", more=[link_rows(split, graph, rows)])
    frame = pd.read_csv(tmp_path / "splits.csv")
    test = frame[(frame["table"] == "links") & (frame["split"] == "test")]["row"].tolist()
    assert test == [row + 1 + shift for shift in (0, 20) for row in split.rows.test.tolist()]
    assert equal(read_links(tmp_path / "splits.csv", rows).rows, split.rows)


def test_rows_of_one_edge_in_two_parts_are_an_error():
    with pytest.raises(ValueError, match="row 1 is in train and row 3, the same edge, in test"):
        Split.of([0, 0, 2]).to_graph(torch.tensor([0, 1, 0]))


def test_a_split_does_not_hold_a_row_twice():
    with pytest.raises(ValueError, match="row 4 is in a split twice"):
        Split(torch.tensor([4, 1]), torch.tensor([4]), torch.tensor([2]))


@pytest.mark.parametrize("values", [[[1, 2], [3]], [b"\xff", b"\xfe"], [{"a": 1}, {"a": 2}]])
def test_a_column_called_split_that_holds_something_else_is_refused_by_its_row(values):
    with pytest.raises(DataError, match=r"t\.csv, row 1, column split: the split .*, expected train"):
        by_column(pd.Series(values, dtype=object), "t.csv")
