"""Table 3: a seed draws the initialization, and the split where the plan says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from censnet_experiments.batched_trainer import Compute
from censnet_experiments.data import LinkData, NodeData
from censnet_experiments.plan import Plan, Recipe
from censnet_experiments.records import read
from censnet_experiments.runner import run_plan

CPU = torch.device("cpu")


def test_replicates_share_one_split_or_draw_their_own(citations: NodeData, tmp_path: Path) -> None:
    graph = citations.graph
    count = graph.num_edges
    seen, judged = {}, {}
    for seed in (0, 1):
        order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
        seen[seed] = order[: count - 10]
        others = torch.stack([torch.arange(10), torch.arange(30, 40)])
        judged[seed] = torch.cat([graph.ends[:, order[-10:]], others], dim=1), torch.tensor([1.0] * 10 + [0.0] * 10)
    data = LinkData(graph, seen, judged, judged)
    plan = Plan("table3", "vgae", Recipe("vgae", {}, (0.01,), epochs=5), "initialization", 2)
    for one in (plan, replace(plan, method="vgae-splits", varies="split")):
        run_plan(one, ["cora"], data, [0, 1], tmp_path, Compute(CPU))
    fixed, drawn = (read(tmp_path / "table3" / "cora" / f"{name}.jsonl") for name in ("vgae", "vgae-splits"))
    assert [record.split_seed for record in fixed] == [0, 0]
    assert [record.split_seed for record in drawn] == [0, 1]
    assert fixed[0].metrics == drawn[0].metrics
    assert fixed[1].metrics != drawn[1].metrics
    assert set(fixed[0].metrics) == {"validation_auc", "validation_ap", "auc", "ap"}
