"""Findings of an audit: what is wrong, how bad it is, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict


class Finding(BaseModel):
    """One finding of the audit.

    Args:
        level: how bad it is.
        what: one sentence.
        kind: what it is about; a leak is of a column that is a feature.
        where: the file and the column of labels.
    """

    model_config = ConfigDict(frozen=True)

    level: Literal["problem", "warning", "note"]
    what: str
    kind: Literal["leak", "duplicate", "labels", "other"] = "other"
    where: str = ""


def sort_findings(findings: Sequence[Finding]) -> list[Finding]:
    """Findings with the worst first."""
    return sorted(findings, key=lambda finding: ("problem", "warning", "note").index(finding.level))
