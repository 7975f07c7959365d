"""Counts and times of requests, in the text format of Prometheus."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping

BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds
TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """What the server has counted since it was started.

    Example:
        >>> metrics = Metrics()
        >>> metrics.count("/predict", "fraud", 200, 0.02, rows=3)
        >>> [line for line in metrics.text({}).splitlines() if "_rows" in line]
        ['# HELP censnet_rows_total Rows that were answered.', '# TYPE censnet_rows_total counter', \
'censnet_rows_total{run="fraud"} 3']
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.requests, self.rows = Counter[Labels](), Counter[Labels]()
        self.buckets: dict[Labels, list[int]] = {}
        self.seconds = Counter[Labels]()

    def count(self, endpoint: str, run: str, state: int, seconds: float, rows: int = 0) -> None:
        """Count one request.

        Args:
            endpoint: its path, of those that there are.
            run: its name, empty if the request names none that there is.
            state: of the answer.
            seconds: until it was answered.
            rows: that were answered.
        """
        with self._lock:
            self.requests[("endpoint", endpoint), ("run", run), ("status", str(state))] += 1
            if rows:
                self.rows[(("run", run),)] += rows
            where: Labels = (("endpoint", endpoint),)
            self.buckets.setdefault(where, [0] * (len(BUCKETS) + 1))[bisect_left(BUCKETS, seconds)] += 1
            self.seconds[where] += seconds  # type: ignore[assignment]

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """All of it.

        Args:
            gauges: name -> what it is, and its value now.
        """
        with self._lock:
            lines = _family("censnet_requests_total", "counter", "Requests by the state of their answer.")
            lines += [_line("censnet_requests_total", labels, value) for labels, value in sorted(self.requests.items())]
            lines += _family("censnet_rows_total", "counter", "Rows that were answered.")
            lines += [_line("censnet_rows_total", labels, value) for labels, value in sorted(self.rows.items())]
            lines += _family("censnet_request_seconds", "histogram", "Seconds until a request was answered.")
            for labels, counts in sorted(self.buckets.items()):
                lines += self._histogram(labels, counts)
        for name, (what, value) in gauges.items():
            lines += [*_family(name, "counter" if name.endswith("_total") else "gauge", what), _line(name, (), value)]
        return "\n".join(lines) + "\n"

    def _histogram(self, labels: Labels, counts: Iterable[int]) -> list[str]:
        total, lines = 0, []
        for bound, value in zip([*map(str, BUCKETS), "+Inf"], counts, strict=True):
            total += value
            lines.append(_line("censnet_request_seconds_bucket", (*labels, ("le", bound)), total))
        lines.append(_line("censnet_request_seconds_sum", labels, self.seconds[labels]))
        return [*lines, _line("censnet_request_seconds_count", labels, total)]


def _family(name: str, kind: str, what: str) -> list[str]:
    return [f"# HELP {name} {what}", f"# TYPE {name} {kind}"]


def _line(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{label}="{_escape(text)}"' for label, text in labels)
    return f"{name}{{{inside}}} {value:.6g}" if inside else f"{name} {value:.10g}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
