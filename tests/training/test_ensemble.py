"""Ensembles: batched members are those trained alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from samples import quick, shapes

from censnet.nn.ensemble import split_members, stack_members
from censnet.pipeline import train
from censnet.pipeline.prepare import prepare
from censnet.runs import load_run
from censnet.training.devices import make_accelerator
from censnet.training.ensemble import can_batch_members
from censnet.training.task_data import build_model
from censnet.training.trainer import fit

CPU = make_accelerator(device="cpu")


@pytest.mark.slow
def test_batched_members_are_those_trained_alone():
    changes = quick(model__dropout=0.0, model__pool=["mean", "attention"], training__monitor="loss")
    asked = prepare(shapes(40), "graph:ring", "strong", changes, 0)
    task_data, settings = asked.task_data, asked.settings
    assert task_data.members == 1
    twice = replace(task_data, parts={level: part.expand(-1, 2) for level, part in task_data.parts.items()})
    assert can_batch_members(twice, settings, 2, torch.device("cpu"))
    alone = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        alone.append(build_model(task_data, settings))
    many, graph = stack_members(alone), task_data.graph.batch(torch.arange(40))
    fit_result = fit(many, twice, settings.training, 5, accelerator=CPU)
    for number, (model, member) in enumerate(zip(alone, split_members(many), strict=True)):
        found = fit(model, task_data, settings.training, 5, accelerator=CPU)
        assert found.best_epoch == [fit_result.best_epoch[number]]
        theirs = [row for row in fit_result.history if row["member"] == number]
        for name, share in (("loss", 1e-5), ("validation_loss", 5e-3)):
            assert [row[name] for row in theirs] == pytest.approx([row[name] for row in found.history], rel=share)
        assert torch.allclose(member(graph).by_level["graph"], model(graph).by_level["graph"], rtol=1e-2, atol=1e-3)


def test_members_with_different_splits_of_graphs_are_not_batched():
    asked = prepare(shapes(40), "graph:ring", "strong", quick(), 0)
    (part,) = asked.task_data.parts.values()
    other = replace(asked.task_data, parts={"graph": torch.cat([part, part.flip(0)], dim=1)})
    assert not can_batch_members(other, asked.settings, 2, torch.device("cpu"))


@pytest.mark.slow
def test_pooled_sums_are_divided_by_the_size_of_an_average_training_graph(tmp_path):
    asked = prepare(shapes(40), "graph:ring", "strong", quick(model__pool=["sum"], model__pool_from="both"), 0)
    graph, (part,) = asked.task_data.graph, asked.task_data.parts.values()
    first = torch.full_like(part, 2)
    first[:3] = 0
    for codes, chosen in ((part, part[:, 0] == 0), (first, slice(3)), (torch.full_like(part, 2), None)):
        model = build_model(replace(asked.task_data, parts={"graph": codes}), asked.settings)
        expected = [
            1.0 if chosen is None else float(offset.diff()[chosen].double().mean())  # without a graph, the sum itself
            for offset in (graph.node_offset, graph.edge_offset)
        ]
        assert [float(readout.reference_size) for readout in model.heads["graph"].readouts] == pytest.approx(expected)
    run = train(shapes(40), "graph:ring", tmp_path / "run", settings=quick(model__pool=["sum"]))
    (size,), (again,) = (
        [readout.reference_size for readout in model.heads["graph"].readouts]
        for model in (run.models[0], load_run(tmp_path / "run").models[0])
    )
    assert torch.equal(size, again)
    assert float(size) > 1
