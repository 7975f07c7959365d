"""What is said of one edge is what is said of it in a table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from censnet.data.load import load_data
from censnet.data.tables.files import Tables
from censnet.ops.graph import Graph
from censnet.runs.novelty import LevelNovelty
from censnet.runs.row_novelty import RowNovelty


def test_reasons_are_those_of_a_table() -> None:
    generator = np.random.default_rng(0)
    edges = pd.DataFrame(generator.integers(0, 20, (200, 2)), columns=["source", "target"])
    edges["amount"], edges["kind"] = generator.normal(size=200), generator.choice(["a", "b"], 200)
    nodes = pd.DataFrame(
        {"id": range(20), "age": generator.normal(40, 5, 20), "town": generator.choice(["x", "y"], 20)}
    )
    training = load_data(Tables(nodes, edges))
    embedded = torch.randn(200, 6, generator=torch.Generator().manual_seed(0))
    novelty = LevelNovelty.fit(training, "edge", embedded, torch.arange(150), torch.arange(150, 200))
    strange = edges.assign(amount=edges["amount"] * generator.choice([1, 30], 200))
    strange["kind"] = strange["kind"].where(generator.random(200) < 0.8, "zebra")
    people = nodes.assign(
        age=nodes["age"] + 500 * (nodes["id"] < 4), town=nodes["town"].where(nodes["id"] % 5 > 0, "z")
    )
    data = load_data(Tables(people, strange), schema=training.schema)
    far = embedded * torch.where(torch.arange(200) % 3 == 0, 4.0, 0.97).unsqueeze(1)
    expected = novelty.describe(data, "edge", novelty.distance(far).unsqueeze(1))
    row, graph = RowNovelty(novelty), data.graph
    assert isinstance(graph, Graph)
    found = [
        row.describe(graph.edges[e].numpy(), graph.nodes[s].numpy(), graph.nodes[t].numpy(), far[e].numpy())
        for e, (s, t) in enumerate(graph.ends.t().tolist())
    ]
    assert found == expected.tolist()
    assert {True, False} == {reason is None for reason in found}
    assert sum("embedding" in reason for reason in found if reason) > 20
