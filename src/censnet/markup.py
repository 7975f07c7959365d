"""Text of a user's data as HTML: escaped, with control characters visible; small tables of it."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from censnet.errors import shorten

LONGEST = 200  # characters of a value that are shown
DASH = "\u2013"  # where there is no value
_UNSEEN = re.compile(  # controls, marks of the direction of text, separators of lines, and halves of characters
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def visible(value: object, longest: int = LONGEST) -> str:
    """A value as text of one line, in which characters that cannot be seen are spelled by their code.

    >>> visible("a\\u202eb\\x00"), visible("x" * 9, 5)
    ('a\\\\u202eb\\\\u0000', 'xxxxx...')
    """
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", shorten(value, longest))


def escape(value: object, longest: int = LONGEST) -> Html:
    """A value as HTML, whatever characters it has, and in its own direction of writing.

    >>> escape("</script> & Co")
    '<bdi>&lt;/script&gt; &amp; Co</bdi>'
    """
    return Html(f"<bdi>{escape_attribute(value, longest)}</bdi>")


def escape_attribute(value: object, longest: int = LONGEST) -> str:
    """A value as the content of an attribute, or of a title."""
    return html.escape(visible(value, longest))


def table(head: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """A table whose first column names its rows; numbers are to the right. What is HTML already is an `Html`."""
    top = "".join(f'<th scope="col">{_cell(name)}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row">{_cell(row[0])}</th>'
        + "".join(f"<td{_class(value)}>{_cell(value)}</td>" for value in row[1:])
        + "</tr>"
        for row in rows
    )
    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{said}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def format_number(value: float | None) -> str:
    """A number for a reader, with four digits behind the point or in all; a dash for what is not there.

    >>> format_number(0.91234), format_number(12345.6), format_number(1.5e-7), format_number(None), format_number(3.0)
    ('0.9123', '12,346', '1.5e-07', '–', '3.0000')
    """
    if value is None or math.isnan(value):
        return DASH
    if value == 0 or 1e-3 <= abs(value) < 10:
        return f"{value:.4f}"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"


def script_json(value: Any) -> str:
    """JSON for a `<script type="application/json">`: no character in it can end the element, or begin another.

    >>> script_json({"id": "</script><!--"})
    '{"id":"\\\\u003c/script\\\\u003e\\\\u003c!--"}'
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def document(title: str, head: str, style: str, nav: str, links: str, main: str, scripts: str) -> str:
    """A page of HTML; all arguments are HTML already.

    Args:
        title: of the page.
        head: further elements of its head.
        style: the style sheet.
        nav, links: the name of the navigation, and its links.
        main: the content.
        scripts: elements behind it.
    """
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
{head}
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<nav aria-label="{nav}">{links}</nav>
<main>
{main}
</main>
{scripts}
</body>
</html>
"""


def _cell(value: object) -> str:
    if isinstance(value, Html):
        return value
    if isinstance(value, float):
        return format_number(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return escape(value) if value not in (None, "") else ""


def _class(value: object) -> str:
    return ' class="number"' if isinstance(value, int | float) and not isinstance(value, bool) else ""
