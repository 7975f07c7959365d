"""The documentation site builds without a warning, and names every public name and every setting."""

from __future__ import annotations

import importlib
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import typer
from pages import ROOT

from censnet import errors
from censnet.cli.app import app
from censnet.settings import Settings

pytestmark = pytest.mark.slow  # its fixtures are trained runs

pytest.importorskip("sphinx", reason="the extra `docs` is not installed")
PACKAGES = (
    "censnet",
    "censnet.data",
    "censnet.nn",
    "censnet.ops",
    "censnet.pipeline",
    "censnet.runs",
    "censnet.settings",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-E", ROOT / "docs", folder]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    from sphinx.util.inventory import InventoryFile

    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    documented = {
        name.rpartition(".")[2] for kind in inventory.data if kind.startswith("py:") for name in inventory.data[kind]
    }
    public = {name for package in PACKAGES for name in importlib.import_module(package).__all__}
    public |= {name for name, found in vars(errors).items() if isinstance(found, type) and issubclass(found, Exception)}
    assert public - documented == set()


def test_every_setting_is_on_the_page_of_settings(site: Path) -> None:
    page = (site / "settings.html").read_text("utf-8")
    groups = {
        name: field.annotation for name, field in Settings.model_fields.items() if name in ("model", "training", "data")
    }
    names = [f"{group}.{key}" for group, schema in groups.items() if schema is not None for key in schema.model_fields]
    assert [name for name in names if f">{name}<" not in page] == []


def test_every_option_is_on_the_page_of_commands(site: Path) -> None:
    page = (site / "cli.html").read_text("utf-8")
    group: Any = typer.main.get_command(app)
    options = {option for command in group.commands.values() for param in command.params for option in param.opts}
    assert {option for option in options if option.startswith("--") and f">{option}<" not in page} == set()


def test_formulas_are_mathml_with_their_tex(site: Path) -> None:
    for name in ("method.html", "api/nn.html"):
        page = (site / name).read_text("utf-8")
        formulas = [ElementTree.fromstring(found) for found in re.findall(r"<math .*?</math>", page, re.DOTALL)]
        texts = [formula.get("alttext") or "" for formula in formulas]
        assert any(r"\operatorname{diag}" in tex for tex in texts)
        assert [text for formula in formulas for text in formula.itertext() if "\\" in text] == []
        assert ".. math::" not in page


def test_aligned_formulas_have_a_row_for_each_line(site: Path) -> None:
    page = (site / "method.html").read_text("utf-8")
    rules = re.findall(r'<math [^>]*alttext="\\begin{aligned}.*?</math>', page, re.DOTALL)
    assert rules
    for rule in rules:
        tree = ElementTree.fromstring(rule)
        assert len(tree.findall(".//{*}mtr")) == (tree.get("alttext") or "").count(r"\\") + 1


def test_the_site_needs_no_network(site: Path) -> None:
    tag = r'<(?:script|img|iframe|link rel="(?:stylesheet|preload|icon)")[^>]*'
    loads = re.compile(tag + r'(?:src|href)="(?:https?:)?//[^"]*"')
    imports = re.compile(r"(?:@import|url\()[^;)]*//[^;)]*|\bimport\(?[\"']https?://[^\"']*")
    pages = {file: file.read_text("utf-8") for file in site.rglob("*") if file.suffix in (".html", ".css", ".js")}
    assert len(pages) > 50
    found = {str(file): rule.findall(text) for file, text in pages.items() for rule in (loads, imports)}
    assert {file: rules for file, rules in found.items() if rules} == {}


@pytest.mark.parametrize("name", ["incidence", "edge_layer"])
def test_the_figures_of_the_method_are_what_the_script_draws(name: str) -> None:
    drawn = runpy.run_path(str(ROOT / "docs" / "figures" / "draw.py"))[f"draw_{name}"]()
    assert drawn == (ROOT / "docs" / "figures" / f"{name}.svg").read_text("utf-8")
