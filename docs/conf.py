"""Sphinx configuration of the documentation: `make docs` builds it to docs/_build."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from censnet import __version__

project = "censnet"
author = "The censnet developers"
copyright = "The censnet developers"
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "settings_tables",
]
exclude_patterns = ["_build", "tables"]
default_role = "py:obj"  # single backticks in docstrings: a link where the name is documented, else code

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

smartquotes = False

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_custom_sections = ["Shape"]
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"censnet {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}
html_copy_source = False
html_show_sphinx = False
