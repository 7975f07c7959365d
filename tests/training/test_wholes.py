"""What is known of each graph as a whole reaches the head: in training, after reloading, and for new rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from samples import quick, shapes, smiles

from censnet.data import DataError, Tables
from censnet.pipeline import train
from censnet.pipeline.prepare import prepare
from censnet.runs import load_run
from censnet.training.task_data import build_model

DESCRIBED = quick(data__descriptors=True)


def dosed(count: int = 150) -> Tables:
    """Shapes whose label nothing but their dose decides."""
    tables = shapes(count)
    assert tables.graphs is not None
    dose = np.random.default_rng(1).normal(5, 2, count)
    graphs = tables.graphs.assign(dose=dose, ill=np.where(dose > 5, "yes", "no"))
    return Tables(tables.nodes, tables.edges, graphs)


@pytest.mark.slow
def test_a_column_that_alone_decides_is_learnt_from_where_it_is_chosen() -> None:
    settings = quick(training__epochs=20, training__learning_rate=0.03, training__batch_size=30, model__head=[16])
    chosen = train(dosed(), "graph:ill", settings=settings, overrides={"dose": "number"})
    blind = train(dosed(), "graph:ill", settings=settings)
    assert chosen.metrics["test"]["graph"]["auc"] > 0.97
    assert blind.metrics["test"]["graph"]["auc"] < 0.8


@pytest.mark.slow
@pytest.mark.parametrize("ensemble", [1, 2])
def test_a_run_with_descriptors_predicts_the_same_after_reloading(ensemble: int, tmp_path: Path) -> None:
    data = smiles()
    run = train(data, "graph:acid,size", tmp_path / "run", settings=DESCRIBED, ensemble=ensemble)
    again, new = load_run(tmp_path / "run"), ["CCCO", "CCCCCCCCCCCCCCCCN", "[Na+].[Cl-]"]
    assert again.config.graph_width == run.schema.descriptors.width > 100
    pd.testing.assert_frame_equal(again.predict(data), run.predict(data))
    pd.testing.assert_frame_equal(again.predict(new), run.predict(new))
    assert again.evaluate(data) == run.metrics
    for mine, theirs in zip(again.embed(new), run.embed(new), strict=True):
        pd.testing.assert_frame_equal(mine, theirs)


def test_the_answer_depends_on_the_descriptors_and_the_embedding_does_not() -> None:
    prepared = prepare(smiles(), "graph:acid", changes=DESCRIBED)
    model = build_model(prepared.task_data, prepared.settings).eval()
    graphs = prepared.task_data.graph
    batch = graphs.batch(torch.arange(6))  # type: ignore[union-attr]
    other = graphs.with_graph_features(graphs.graph_features.flip(0)).batch(torch.arange(6))  # type: ignore[union-attr]
    assert not torch.allclose(model(batch).by_level["graph"], model(other).by_level["graph"])
    for mine, theirs in zip(model.embed(batch), model.embed(other), strict=True):
        assert mine.equal(theirs)


@pytest.mark.slow
def test_statistics_come_from_the_training_part_alone() -> None:
    prepared = prepare(smiles(80), "graph:size", changes=DESCRIBED)
    graphs, train_rows = prepared.task_data.graph.graph_features, prepared.splits["graph"].train
    assert graphs is not None
    place = prepared.data.schema.descriptors.names.index("MolWt")
    torch.testing.assert_close(graphs[train_rows, place].mean(), torch.tensor(0.0), atol=1e-5, rtol=0)
    torch.testing.assert_close(graphs[train_rows, place].std(correction=0), torch.tensor(1.0))


def test_new_rows_with_a_bad_value_get_an_error_and_their_atoms_no_embedding() -> None:
    data = smiles().assign(dose=np.linspace(1, 9, 40))
    run = train(data, "graph:acid", settings=quick(training__epochs=1), overrides={"dose": "number"})
    new = pd.DataFrame({"smiles": ["CCO", "CCCN", "CF"], "dose": ["1", "much", "3"]})
    found = run.predict(new)
    assert found["error"].notna().tolist() == [False, True, False]
    assert found["acid_p_1"].isna().tolist() == [False, True, False]
    nodes, edges, graphs = run.embed(new)
    assert nodes["smiles"].tolist() == ["CCO"] * 3 + ["CF"] * 2
    assert edges["smiles"].tolist() == ["CCO"] * 2 + ["CF"]
    assert graphs is not None
    assert graphs["e0"].isna().tolist() == [False, True, False]


@pytest.mark.slow
def test_data_with_other_features_of_graphs_are_refused() -> None:
    run = train(smiles(), "graph:acid", settings=DESCRIBED)
    plain = prepare(smiles(), "graph:acid", changes=quick()).data
    with pytest.raises(DataError, match=r"the data have 0 features of each graph, expected \d+"):
        run.predict(plain.graph)
    with pytest.raises(DataError, match=r"data\.descriptors\), expected molecules"):
        train(shapes(), "graph:ring", settings=DESCRIBED)
