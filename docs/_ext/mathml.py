"""Formulas as MathML, made when the site is built: browsers set it by themselves, so that no page loads a script."""

from __future__ import annotations

import re
from html import escape

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger
from sphinx.writers.html5 import HTML5Translator

logger = getLogger(__name__)

# deg, diag: a thin space on both sides as TeX sets it, but none inside or before a parenthesis and at the ends
OPENED = r"(?P<opened><mrow>|(?:\(|&#x00028;)</mo>)?"
CLOSED = r"(?=(?P<closed></mrow>|<mo[^>]*>(?:\(|&#x00028;))?)"
FUNCTION = re.compile(rf"{OPENED}<m([io])>(?P<name>[a-z]{{2,}})</m\2>{CLOSED}")


def visit_inline(writer: HTML5Translator, node: nodes.math) -> None:
    writer.body.append(to_mathml(node, "inline"))
    raise nodes.SkipNode


def visit_block(writer: HTML5Translator, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math">{to_mathml(node, "block")}</div>')
    raise nodes.SkipNode


def to_mathml(node: nodes.Element, display: str) -> str:
    """A formula as MathML, with its TeX for those who copy it or have it read to them."""
    tex = node.astext()
    known = tex.replace("{aligned}", "{align*}")
    if r"\\" in tex and r"\begin" not in tex:
        known = rf"\begin{{align*}}{tex}\end{{align*}}"
    try:
        formula = convert(known, display=display)
    except Exception as error:  # the library has a class for each mistake
        logger.warning("%s: %s, in the formula %s", type(error).__name__, error, tex, location=node)
        return escape(tex)
    if left := re.search(r"<m[io]>(\\\w+|&)</m[io]>", formula):
        logger.warning("%s is not understood, in the formula %s", left[1], tex, location=node)
    spaced = FUNCTION.sub(_set_function, formula)
    return spaced.replace("<math ", f'<math alttext="{escape(tex)}" ', 1)


def _set_function(found: re.Match[str]) -> str:
    before, after = ("0" if found[end] else "0.167em" for end in ("opened", "closed"))
    return f'{found["opened"] or ""}<mo lspace="{before}" rspace="{after}">{found["name"]}</mo>'


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
