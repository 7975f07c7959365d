"""The page at `/`: paste SMILES or rows, and see the answer, its interval, a picture, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from censnet.markup import escape
from censnet.serving.html_pages import LINKS, assemble
from censnet.serving.limits import Limits

SCRIPTS = ("answers.js", "why.js", "try.js")


def try_page(runs: Mapping[str, Mapping[str, Any]], limits: Limits) -> tuple[str, str]:
    """The page and its policy.

    Args:
        runs: name -> description.
        limits: that the page states.
    """
    names = ", ".join(escape(name) for name in runs)
    said = f"at most {limits.rows:,} rows and {limits.body:,} bytes at a time"
    body = f"""<h1>Predict with {names}</h1>
<p class="lead" id="lead">Paste SMILES or rows; {said}.</p>
<noscript><p class="caution">This page needs JavaScript. The endpoints below it do not: see
<a href="/docs">the documentation</a>.</p></noscript>
<form id="request" autocomplete="off"></form>
<p id="state" role="status" aria-live="polite"></p>
<section id="answers" aria-label="Answers" hidden></section>
<section id="why" aria-label="Why" hidden></section>"""
    content = {"runs": list(runs.values()), "rows": limits.rows}
    return assemble("censnet", body, content, SCRIPTS, LINKS)
