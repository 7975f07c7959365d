"""What the script of a page reads, as tests read it."""

from __future__ import annotations

import json
import re
from typing import Any


def content_of(page: str) -> dict[str, Any]:
    """The content of the figures of a page."""
    found = re.search(r'<script type="application/json" id="content">(.*?)</script>', page, re.S)
    assert found is not None
    content: dict[str, Any] = json.loads(found[1])
    return content
