"""Specs: every published number is there, and errors in a file name the field."""

from __future__ import annotations

from dataclasses import replace

import pytest

from censnet.settings.presets import make_settings
from censnet_experiments.cells import TABLES, find_cell
from censnet_experiments.plan import SECTIONS, Pipeline, Preset
from censnet_experiments.runner import reproduce
from censnet_experiments.spec import Spec, find_spec, load_specs, read_spec

METHODS = {
    "table1": ["chebynet", "gcn", "graphsage", "gat", "lnet", "adalnet", "censnet", "censnet-released"],
    "table2": ["forest", "linear", "gcn", "censnet"],
    "table3": ["spectral", "deepwalk", "vgae", "censnet-vae"],
    "speed": ["gcn", "censnet"],
}
SPECS = [spec for table in METHODS for spec in load_specs(table).values()]
OURS = [spec for table in TABLES for spec in load_specs(table).values() if isinstance(spec.recipe, Preset)]


def name(spec: Spec) -> str:
    return f"{spec.table}-{spec.method}"


@pytest.mark.parametrize("table", METHODS)
def test_the_paper_s_methods_are_all_there_in_its_order(table: str) -> None:
    shown = [spec.method for spec in load_specs(table).values() if spec.section == "table"]
    assert shown == METHODS[table]


@pytest.mark.parametrize("spec", SPECS, ids=name)
def test_every_cell_has_its_published_numbers(spec: Spec) -> None:
    assert set(spec.published) == (set() if spec.table == "speed" else set(TABLES[spec.table]))
    for cell, numbers in spec.published.items():
        assert set(numbers) == set(find_cell(spec.table, cell).metrics)


def test_published_numbers_are_the_paper_s() -> None:
    """A few from each table, and the best of each row as the paper prints it in bold."""
    assert find_spec("table1", "censnet").published["cora-3"]["test"] == (79.4, 1.0)
    assert find_spec("table1", "adalnet").published["citeseer-0.5"]["test"] == (53.8, 4.7)
    assert find_spec("table2", "linear").published["lipophilicity-60"]["validation"] == (1.46, 0.37)
    assert find_spec("table2", "censnet").published["tox21-90"]["test"] == (0.79, 0.01)
    assert find_spec("table3", "vgae").published["pubmed"]["ap"] == (94.7, 0.02)
    best = {
        cell: max(METHODS["table1"][:7], key=lambda m: find_spec("table1", m).published[cell]["test"][0])
        for cell in TABLES["table1"]
    }
    assert list(best.values()) == [
        *("censnet", "adalnet", "adalnet"),
        *("adalnet", "censnet", "censnet"),
        *("lnet", "lnet", "censnet"),
    ]


@pytest.mark.parametrize("spec", OURS, ids=name)
def test_presets_have_known_changes(spec: Spec) -> None:
    assert isinstance(spec.recipe, Preset)
    settings = make_settings(spec.recipe.preset, SECTIONS[spec.table], spec.recipe.changes)
    assert (settings == make_settings("strong", SECTIONS[spec.table])) == (not spec.recipe.changes)


@pytest.mark.parametrize("spec", load_specs("edges").values(), ids=name)
def test_methods_of_edges_are_for_cells_and_say_what_they_change(spec: Spec) -> None:
    cells = [cell for cell in TABLES["edges"] if spec.is_for(cell)]
    assert cells
    assert spec.caveats
    if isinstance(spec.recipe, Pipeline):
        usual = replace(spec.plan(), recipe=Pipeline("strong"))
        changed = [spec.plan().settings(cell) != usual.settings(cell) for cell in cells]
        assert all(changed) == (spec.method != "strong")


def test_a_cell_of_a_method_is_one_of_the_table() -> None:
    text = 'table = "edges"\nmethod = "x"\ntitle = "x"\nruns = 1\nsource = "x"\ncells = ["otc", "karata"]\n'
    with pytest.raises(ValueError, match="edges has no cell and no data 'karata'"):
        list(read_spec(text + 'recipe = { trees = "raw" }', "x.toml"))


def test_external_methods_are_refused_with_their_command() -> None:
    with pytest.raises(ValueError, match=r"`python -m benchmarks\.chemprop` adds its records"):
        reproduce("molecules", methods=["chemprop"])


def test_an_unknown_change_of_a_preset_is_named() -> None:
    text = 'table = "nodes"\nmethod = "x"\ntitle = "x"\nruns = 1\nsource = "x"\n'
    with pytest.raises(ValueError, match=r"unknown setting model\.widht"):
        list(read_spec(text + 'recipe = { preset = "strong", changes = { "model.widht" = 3 } }', "x.toml"))
    with pytest.raises(ValueError, match=r"unknown setting recipe\.ensembel"):
        list(read_spec(text + 'recipe = { preset = "strong", ensembel = 3 }', "x.toml"))


@pytest.mark.parametrize("spec", SPECS, ids=name)
def test_learning_rates_are_the_paper_s(spec: Spec) -> None:
    grid = {0.01, 0.005, 0.001, 0.0005}
    assert set(spec.recipe.learning_rates) <= grid
    if spec.table == "table1" and spec.section != "kernels":
        assert set(spec.recipe.learning_rates) == grid
        assert spec.recipe.epochs == 1000
        assert spec.runs >= (20 if spec.recipe.batch_size is None else 10)


GOOD = """
table = "table1"
method = "gcn"
title = "GCN"
runs = 20
source = "Table 1"
recipe = { model = "gcn", options = { hidden = 32 } }
published = { cora-3 = { test = [74.0, 2.8] } }
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("hidden = 32", "hiden = 32", "unknown setting recipe.options.hiden: did you mean hidden?"),
        ('model = "gcn"', 'model = "gnc"', "there is no model 'gnc', expected one of"),
        ('model = "gcn",', 'model = "gcn", epoch = 3,', "unknown setting recipe.epoch"),
        ("runs = 20", "run = 20", "unknown setting run|Field required"),
        ("cora-3", "cora-4", "table1 has no cell 'cora-4', expected one of cora-3"),
        ("test =", "auc =", "cora-3 has no metric 'auc'"),
        ("runs = 20", "runs = [", "the spec: "),
    ],
)
def test_errors_name_the_field(old: str, new: str, message: str) -> None:
    assert len(list(read_spec(GOOD))) == 1
    with pytest.raises(ValueError, match=message):
        list(read_spec(GOOD.replace(old, new)))


def test_a_variant_inherits_what_it_does_not_change() -> None:
    first, second = read_spec(GOOD + '[variants.wide]\ntitle = "wide"\nrecipe.options = { dropout = 0.1 }\n')
    assert second.method == "gcn-wide"
    assert second.recipe.options == {"hidden": 32, "dropout": 0.1}
    assert second.published == first.published


def test_an_unknown_method_is_named() -> None:
    with pytest.raises(ValueError, match="table1 has no method 'censnett': did you mean censnet"):
        find_spec("table1", "censnett")
