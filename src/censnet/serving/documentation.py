"""The page at `/docs`: every endpoint with its fields, examples that the runs answer, and the refusals."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from censnet.markup import Html, escape, escape_attribute, table
from censnet.serving.html_pages import LINKS, assemble
from censnet.serving.limits import Limits

LONGEST = 4_000  # characters of an example
WORDS = {"integer": "whole number", "string": "text", "array": "list", "boolean": "true or false"}


def documentation_page(
    schema: Mapping[str, Any], runs: Mapping[str, Mapping[str, Any]], limits: Limits
) -> tuple[str, str]:
    """The page and its policy.

    Args:
        schema: OpenAPI's, of the application.
        runs: name -> description.
        limits: that are stated.
    """
    body = [
        "<h1>Documentation</h1>",
        '<p class="lead">JSON in, JSON out. <a href="/openapi.json">openapi.json</a> says the same to programs.</p>',
        _limits(limits),
        _runs(runs),
    ]
    for path, methods in schema["paths"].items():
        for method, found in methods.items():
            body.append(_endpoint(path, method, found, schema, runs))
    return assemble("censnet: documentation", "\n".join(body), {}, (), LINKS)


def _limits(limits: Limits) -> str:
    rows = [
        ("bytes of a request", f"{limits.body:,}"),
        ("rows of all its tables, SMILES or pairs", f"{limits.rows:,}"),
        ("columns of a table", f"{limits.columns:,}"),
        ("nodes and edges, or atoms and bonds", f"{limits.size:,}"),
        ("rows to be explained", f"{limits.explained:,}"),
        ("seconds that an answer may take", f"{limits.seconds:g}"),
        ("requests that may wait", f"{limits.queue:,}"),
    ]
    return f'<section><h2>Limits</h2><div class="scroll">{table(["at most", "number"], rows)}</div></section>'


def _runs(runs: Mapping[str, Mapping[str, Any]]) -> str:
    parts = ["<section><h2>Runs</h2>"]
    for name, found in runs.items():
        targets = "; ".join(
            "links" if one["level"] == "link" else f"{one['level']}:{one['column']} ({one['kind']})"
            for one in found["targets"]
        )
        parts.append(f"<h3>{escape(name)}</h3><p>Predicts {escape(targets, 1000)}.</p>")
        rows = [
            (name, ", ".join(map(str, one["keys"].values())), _columns(one["columns"]))
            for name, one in found["tables"].items()
        ]
        parts.append(f'<div class="scroll">{table(["table", "ids", "columns"], rows)}</div>')
    return "".join(parts) + "</section>"


def _columns(columns: list[dict[str, str]]) -> Html:
    return escape(", ".join(f"{one['name']} ({one['kind']})" for one in columns) or "\u2013", 3000)


def _endpoint(
    path: str,
    method: str,
    found: Mapping[str, Any],
    schema: Mapping[str, Any],
    runs: Mapping[str, Mapping[str, Any]],
) -> str:
    parts = [f"<section><h2><code>{method.upper()} {escape_attribute(path)}</code></h2>"]
    parts += [f"<p>{_prose(each)}</p>" for each in found.get("description", "").split("\n\n")]
    body = found.get("requestBody", {}).get("content", {}).get("application/json")
    if body is None:
        return "".join(parts) + f"<pre>curl http://HOST{escape_attribute(path)}</pre></section>"
    fields = schema["components"]["schemas"][body["schema"]["$ref"].rsplit("/", 1)[1]]["properties"]
    rows = [(name, _kind(field), _default(field), field.get("description", "")) for name, field in fields.items()]
    parts.append(f'<div class="scroll">{table(["field", "type", "default", "meaning"], rows)}</div>')
    for example in body.get("examples", {}).values():
        text = json.dumps(example["value"], ensure_ascii=False)
        shown = text if len(text) <= LONGEST else text[:LONGEST] + " ..."
        command = f"curl http://HOST{path} -H 'content-type: application/json' -d '{shown.replace(chr(39), '')}'"
        parts.append(f"<h3>{escape(example['summary'])}</h3><pre>{escape_attribute(command, LONGEST + 200)}</pre>")
        answer = runs.get(example["value"].get("run", ""), {}).get("answered")
        if path == "/predict" and answer and "coverage" not in example["value"] and "top" not in example["value"]:
            pretty = json.dumps(json.loads(answer), indent=1, ensure_ascii=False)
            parts.append(f"<p>is answered by</p><pre>{_lines(pretty)}</pre>")
    states = [(state, Html(_prose(one["description"]))) for state, one in sorted(found["responses"].items())]
    parts.append(f'<div class="scroll">{table(["state", "meaning"], states)}</div></section>')
    return "".join(parts)


def _prose(text: str) -> str:
    """Text in which words between backticks are code."""
    parts = escape_attribute(" ".join(text.split()), 2000).split("`")
    return "".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))


def _lines(text: str) -> str:
    return "\n".join(escape_attribute(line, 500) for line in text[:LONGEST].split("\n"))


def _kind(field: Mapping[str, Any]) -> str:
    """The type of a field in words."""
    if "enum" in field:
        return ", ".join(map(str, field["enum"]))
    if "anyOf" in field:
        kinds = [_kind(one) for one in field["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if field.get("type") == "array":
        return "list of " + _kind(field.get("items", {}))
    if "$ref" in field:
        return str(field["$ref"]).rsplit("/", 1)[1].lower()
    kind = str(field.get("type", "anything"))
    return WORDS.get(kind, kind)


def _default(field: Mapping[str, Any]) -> str:
    value = field.get("default")
    return "" if value is None else json.dumps(value)
