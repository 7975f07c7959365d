"""What one request, and all of them together, may take; and the refusal that says so.

The bytes of a body are counted in `bodies.py`, its rows in `requests.py`, columns in `row_tables.py`, computing time in
`workers.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from censnet.errors import CensNetError

BAD, TOO_LARGE, WRONG, FAILED, BUSY, SLOW = 400, 413, 422, 500, 503, 504  # HTTP states


@dataclass(frozen=True)
class Limits:
    """Bounds of a server.

    Args:
        body: bytes of one request.
        rows: of all tables of a request together, or its SMILES and pairs.
        columns: of one table.
        size: nodes and edges, or atoms and bonds, of all graphs of a request.
        seconds: that one request may be computed for, and the longest that it may wait before.
        queue: requests that wait; further ones are refused.
        batch: SMILES of different requests that are computed together.
        explained: rows that one request may have explained.
    """

    body: int = 4_000_000
    rows: int = 10_000
    columns: int = 1_000
    size: int = 100_000
    seconds: float = 30.0
    queue: int = 256
    batch: int = 256
    explained: int = 5

    @property
    def waiting_bytes(self) -> int:
        """Bytes of all requests together that are read or wait."""
        return 16 * self.body

    @property
    def smiles(self) -> int:
        """Characters of all SMILES of a request: no molecule has more atoms than its SMILES has characters."""
        return 2 * self.size


class RefusedError(CensNetError):
    """A request that is not answered: an HTTP state, and one line that says why and what to do.

    Args:
        state: of the answer.
        text: the line.
        retry: seconds after which it may be tried again, where that makes sense.
    """

    def __init__(self, state: int, text: str, retry: int | None = None) -> None:
        super().__init__(text)
        self.state, self.text, self.retry = state, text, retry
