"""The direction of edges: decided when data are read without a schema, said in a note, and stored in the schema."""

from __future__ import annotations

from collections.abc import Sequence

from censnet.data.tables.files import Tables
from censnet.data.tables.notes import Note
from censnet.data.tables.oriented import check_direction
from censnet.data.tables.schema import Schema
from censnet.option_names import name_option


def decide_direction(asked: bool | None, tables: Tables, oriented: Sequence[str]) -> bool | None:
    """Whether edges are directed, by the user or by the source of the tables; None leaves it to the form of the edges.

    Edges that are left are directed unless each is there twice, once in each direction (`edge_form`).

    Args:
        asked: what the user says.
        tables: whose source, such as networkx, may say it.
        oriented: columns of edges whose sign follows the order of the ends, which is arbitrary then.
    """
    if oriented:
        check_direction(asked, oriented, tables.name("edges"))
        return False
    return tables.directed if asked is None else asked


def direction_note(schema: Schema, tables: Tables, asked: bool | None, oriented: Sequence[str]) -> list[Note]:
    """Whether edges are directed, and where that comes from; nothing where there are no edges."""
    if not len(tables.frames()["edges"]):
        return []
    source, target = (schema.edges.keys.get(role, role) for role in ("source", "target"))
    what = f"edges are directed, from {source} to {target}" if schema.directed else "edges are undirected"
    if oriented:
        what += f" and the order of {source} and {target} is arbitrary: the sign of {', '.join(oriented)} follows it"
    other = name_option("--undirected" if schema.directed else "--directed")
    overrule = f"; {other} overrules" if asked is None else ""
    return [Note("direction", f"{tables.name('edges')}: {what}{overrule}")]
