"""Sphinx configuration of the documentation: `make docs` builds it to docs/_build."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from censnet import __version__

project = "censnet"
author = "The censnet developers"
copyright = "The censnet developers"
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "command_reference",
    "mathml",
    "settings_tables",
]
exclude_patterns = ["_build", "tables"]
default_role = "py:obj"  # single backticks in docstrings: a link where the name is documented, else code

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

smartquotes = False  # options begin with two hyphens

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_custom_sections = ["Shape"]
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"censnet {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}
html_copy_source = False
html_show_sphinx = False

CODE = re.compile(r":[\w:]+:`[^`]*`|``.*?``|`(?P<content>[^`]+)`", re.DOTALL)  # a role, code, or single backticks


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", _show_code)
    app.connect("doctree-read", _set_dashes)


def _show_code(app: Any, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """Show single backticks as code where their content, such as `./karate` or `a = 1`, is not a name to link."""
    lines[:] = CODE.sub(_as_code, "\n".join(lines)).split("\n")


def _as_code(found: re.Match[str]) -> str:
    content = found["content"]
    return found[0] if content is None or re.fullmatch(r"\w+(\.\w+)*", content) else f"``{content}``"


def _set_dashes(app: Any, doctree: nodes.document) -> None:
    """Set a dash between a parameter and its description, where Sphinx leaves two hyphens."""
    for text in list(doctree.findall(nodes.Text)):
        if text == " -- ":
            text.parent.replace(text, nodes.Text(" \N{EN DASH} "))
