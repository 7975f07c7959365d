"""The direction of edges: decided when data are read without a schema, said in a note, and stored in the schema."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from censnet.data.tables.files import Tables
from censnet.data.tables.notes import Note
from censnet.data.tables.schema import Schema
from censnet.errors import DataError
from censnet.option_names import column_option, name_option, target_option


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


def oriented_columns(
    decided: Mapping[str, str], targets: Collection[str], oriented: Collection[str], file: str
) -> list[str]:
    """The oriented columns of edges, by name: features that the user said are, and such targets.

    Args:
        decided: column of edges -> kind, as the user says.
        targets: the columns of edges that are predicted.
        oriented: those of them that are oriented.
        file: of edges, for messages.
    """
    features = [name for name, kind in decided.items() if kind == "oriented"]
    both = next((name for name in features if name in targets), None)
    if both is not None:
        said, asked = column_option((both, "oriented")), target_option(f"edge:{both}=oriented")
        raise DataError(
            f"is predicted, and said to be oriented by {said}, expected one of both: ask for {asked}", file, column=both
        )
    return [*features, *oriented]


def check_direction(asked: bool | None, names: Collection[str], file: str) -> None:
    """Raise where edges are said to be directed, and a column is oriented."""
    if asked:
        raise DataError(
            f"edges are said to be directed, and {', '.join(names)} to be oriented, expected one of both: with what is "
            "oriented, the order of the ends of a row is arbitrary; a direction that means something enters as an "
            "oriented column that is 1 in each row",
            file,
        )
