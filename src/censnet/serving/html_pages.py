"""A self-contained HTML page: its style, its script, the policy that allows these alone."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from censnet.markup import document, script_json

STYLES = (("censnet.report", "page.css"), ("censnet.serving", "serve.css"))
DOM = ("censnet.report", "dom.js")


def assemble(
    title: str, body: str, content: Mapping[str, Any], scripts: Sequence[str] = (), links: str = ""
) -> tuple[str, str]:
    """A page that asks nothing of a network but of its own server. -> HTML, and the policy for its header

    Args:
        title: of the page, as HTML.
        body: of the page, as HTML.
        content: what the scripts read.
        scripts: names in `assets`, behind those of the report that they share.
        links: at the top, as HTML.
    """
    style = "\n".join(_asset(package, name) for package, name in STYLES)
    parts = [_asset(*DOM), *(_asset("censnet.serving", name) for name in scripts)] if scripts else []
    script = '"use strict";\n(() => {\n' + "\n".join(parts) + "\n})();\n" if parts else ""
    allowed = f"script-src '{_digest(script)}'; connect-src 'self'; " if script else ""
    policy = f"default-src 'none'; {allowed}style-src '{_digest(style)}'; img-src data:; base-uri 'none'; "
    policy += "form-action 'none'; frame-ancestors 'none'"
    code = f'<script type="application/json" id="content">{script_json(content)}</script>\n<script>{script}</script>'
    head = '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">'
    return document(title, head, style, "Pages", links, body, code if script else ""), policy


def _asset(package: str, name: str) -> str:
    return resources.files(package).joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """The SHA-256 of a script or style by which the policy allows it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


LINKS = '<a href="/">Try it</a><a href="/docs">Documentation</a><a href="/runs">Runs</a><a href="/metrics">Metrics</a>'
