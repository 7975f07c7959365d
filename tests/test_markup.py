"""Whatever a user's data hold, it is text on a page, and it can be seen."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from censnet.markup import DASH, Html, escape, format_number, script_json, table, visible

HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "<!--",
    "]]>",
    "a\u202egpj.exe",
    "zero\u200bwidth",
    "nul\x00 and \x1b[31m",
    "half \ud800",
    "&lt;",
    "'`${}",
]


class Reader(HTMLParser):
    """Collects the elements and the text of HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_a_user_s_makes_no_element_and_is_read_back(text: str) -> None:
    reader = Reader()
    reader.feed(escape(text))
    reader.close()
    assert (reader.tags, reader.text) == (["bdi"], visible(text))


@given(st.text())
def test_what_is_visible_has_no_control_and_can_be_written(text: str) -> None:
    found = visible(text, 1000)
    assert not any(letter in found for letter in "\x00\x1b\n\u202e\u2066\u2028\ufeff")
    found.encode("utf-8")


@given(st.recursive(st.text() | st.floats(allow_nan=False, allow_infinity=False) | st.none(), st.lists))
def test_json_in_a_script_is_the_same_and_cannot_end_it(value: object) -> None:
    found = script_json(value)
    assert not set("<>&\u2028\u2029") & set(found)
    assert json.loads(found) == value


def test_a_table_has_scopes_and_numbers_to_the_right() -> None:
    found = table(["", "test"], [["<a>", 0.5], ["b", Html("<i>x</i>")], ["c", 12345]], "scores & more")
    reader = Reader()
    reader.feed(found)
    assert reader.tags.count("th") == 5
    assert "i" in reader.tags
    assert "a" not in reader.tags
    assert '<td class="number">0.5000</td>' in found
    assert '<td class="number">12,345</td>' in found


def test_numbers_have_few_digits() -> None:
    values = (0.0, 0.99, 1234.567, 3e-9, 5e9, -0.25, float("nan"), float("inf"))
    found = ["0.0000", "0.9900", "1235", "3e-09", "5e+09", "-0.2500", DASH, "inf"]
    assert [format_number(value) for value in values] == found
