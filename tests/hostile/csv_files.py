"""Text files that are cut, ragged, mislabelled or in another encoding: what cannot be read is said, with its place."""

from __future__ import annotations

import codecs
import gzip
import random
from collections.abc import Callable, Iterator
from functools import partial

from hostile.accepted import same_ids, sound
from hostile.place import Place, Refusal, says
from hostile.tables import COMMA, Dialect, world, write_all

WORLD = world()
NODES, EDGES = (COMMA.text(WORLD[table]) for table in ("nodes", "edges"))


def checks() -> Iterator[tuple[str, Callable[[Place], None]]]:
    """Whole files, rows, headers, encodings; then random damage."""
    for row in (1, 5, 24):
        for name, line in (("long", "1,2,3,4,5,6,7,8"), ("short", "1,2"), ("one", "x")):
            yield f"ragged-{name}-{row}", partial(_ragged, row, line)
    for delimiter in (";", "\t"):
        for row in (2, 20):
            yield (
                f"ragged-{'tab' if delimiter == chr(9) else 'semicolon'}-{row}",
                partial(_ragged, row, "1,2", dialect=Dialect(delimiter)),
            )
    for name, (text, words) in REFUSED.items():
        yield f"refused-{name}", partial(_refused, text, words)
    for name, text in SOUND.items():
        yield f"sound-{name}", partial(_sound, text)
    for encoding in ENCODINGS:
        for cell in ("Orl\u00e9ans", "\u6771\u4eac", "Oslo"):
            yield f"encoding-{encoding}-{ascii(cell)[1:-1]}", partial(_encoding, encoding, cell)
    for name, header in HEADERS.items():
        yield f"header-{name}", partial(_header, header)
    for number in range(120):
        yield f"damage-{number}", partial(_damage, number)


def _write(place: Place, edges: bytes, nodes: bytes = NODES.encode()) -> None:
    (place.data / "nodes.csv").write_bytes(nodes)
    (place.data / "edges.csv").write_bytes(edges)


def _ragged(row: int, line: str, place: Place, dialect: Dialect = COMMA) -> None:
    """A row with too many or too few fields is refused by its number."""
    write_all(place.data, {"nodes": WORLD["nodes"]})
    lines = dialect.text(WORLD["edges"]).split("\n")
    lines.insert(row, line.replace(",", dialect.delimiter))
    name = "edges" + dialect.suffix
    (place.data / name).write_text("\n".join(lines))
    says(place.load(), name, f"row {row}", "fields")


HEAD = EDGES.split("\n")[0]
REFUSED: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "empty": (b"", ("edges.csv", "empty")),
    "line-breaks": (b"\n\n\r\n", ("edges.csv", "empty")),
    "spaces": (b"   \n  ", ("edges.csv",)),
    "mark-alone": (codecs.BOM_UTF8, ("edges.csv", "empty")),
    "nul": (b"\0" * 100, ("edges.csv",)),
    "binary": (bytes(range(256)) * 10, ("edges.csv",)),
    "png": (b"\x89PNG\r\n\x1a\n" + b"\0" * 60, ("edges.csv",)),
    "zip": (b"PK\x03\x04" + bytes(range(200)), ("edges.csv",)),
    "parquet-as-csv": (b"PAR1" + bytes(200) + b"PAR1", ("edges.csv",)),
    "gzip-as-csv": (gzip.compress(EDGES.encode()), ("edges.csv",)),
    "json": (b'[{"source": 1, "target": 2}]', ("edges.csv",)),
    "html": (b"<html><body>404</body></html>", ("edges.csv", "source")),
    "prose": (b"Dear colleague,\nplease find attached", ("edges.csv",)),
    "no-header": (EDGES.split("\n", 1)[1].encode(), ("edges.csv", "source")),
    "pipes": (EDGES.replace(",", "|").encode(), ("edges.csv", "source")),
    "spaces-between": (EDGES.replace(",", " ").encode(), ("edges.csv", "source")),
    "quote-open": (EDGES.replace("card", '"card', 1).encode(), ("edges.csv",)),
    "header-quote-open": (b'"' + EDGES.encode(), ("edges.csv",)),
    "twice": (EDGES.replace("amount", "way", 1).encode(), ("edges.csv", "way", "2 times")),
    "three-times": (EDGES.replace("amount", "way", 1).replace("fee", "way", 1).encode(), ("edges.csv", "way")),
    "source-twice": (EDGES.replace("amount", "source", 1).encode(), ("edges.csv", "source")),
    "one-end": (EDGES.replace("target", "goal", 1).encode(), ("edges.csv", "target")),
    "no-ends": (EDGES.replace("target", "b", 1).replace("source", "a", 1).encode(), ("edges.csv", "source")),
}  # fmt: skip
SOUND: dict[str, bytes] = {
    "no-last-line-break": EDGES.rstrip("\n").encode(),
    "blank-lines-at-the-end": (EDGES + "\n\n\n").encode(),
    "blank-lines-before": ("\n\n" + EDGES).encode(),
    "blank-lines-between": EDGES.replace("\n", "\n\n").encode(),
    "header-spaces": EDGES.replace(",amount,", " , amount ,", 1).encode(),
    "header-capitals": EDGES.encode(),
    "crlf-mixed": EDGES.replace("\n", "\r\n", 5).encode(),
    "mark-and-quotes": codecs.BOM_UTF8 + EDGES.replace("source", '"source"', 1).encode(),
    "huge-field": EDGES.replace("card", "y" * 5_000_000, 1).encode(),
    "long-line-break-field": EDGES.replace("card", '"' + "y\n" * 1000 + '"', 1).encode(),
    "quoted-commas": EDGES.replace("card", '"a,b"').encode(),
    "doubled-quotes": EDGES.replace("card", '"a""b"').encode(),
    "quote-inside": EDGES.replace("card", 'ca"rd').encode(),
    "single-quotes": EDGES.replace("card", "'card'").encode(),
    "backslashes": EDGES.replace("card", "a\\").encode(),
    "many-columns": "\n".join(
        line + "".join(f",{'c' if n == 0 else ''}{k}" for k in range(1000))
        for n, line in enumerate(EDGES.strip().split("\n"))
    ).encode(),
    "unnamed-column": "\n".join(f"{n or ''},{line}" for n, line in enumerate(EDGES.split("\n")[:-1])).encode(),

    "trailing-comma": "\n".join(line + "," for line in EDGES.strip().split("\n")).encode(),
}  # fmt: skip


def _refused(text: bytes, words: tuple[str, ...], place: Place) -> None:
    _write(place, text)
    says(place.load(), *words)
    screen = place.command("inspect", place.data)
    says(place.refusal(screen), *words)


def _sound(text: bytes, place: Place) -> None:
    _write(place, text)
    found = place.load()
    assert not isinstance(found, Refusal), f"a table that can be read was refused: {found}"
    sound(found)
    same_ids(found, WORLD)


ENCODINGS = (
    "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be", "latin-1", "cp1252", "cp037",
    "shift_jis", "gb18030", "big5", "koi8-r", "mac-roman", "utf-7",
)  # fmt: skip


def _encoding(encoding: str, cell: str, place: Place) -> None:
    """A text in another encoding is read right or refused; never as other letters."""
    written = {table: {name: list(cells) for name, cells in columns.items()} for table, columns in WORLD.items()}
    written["nodes"]["city"] = [cell] * len(written["nodes"]["id"])
    written["nodes"]["city"][0] = "Bonn"
    try:
        raw = COMMA.text(written["nodes"]).encode(encoding)
    except UnicodeEncodeError:
        raw = COMMA.text(written["nodes"]).encode(encoding, "replace")
        written["nodes"]["city"] = [
            text.encode(encoding, "replace").decode(encoding) for text in written["nodes"]["city"]
        ]
    _write(place, EDGES.encode(), raw)
    found = place.load()
    if isinstance(found, Refusal):
        says(found, "nodes.csv")
        assert encoding not in ("utf-8", "utf-8-sig", "utf-16", "utf-32"), f"{encoding} was refused: {found}"
        return
    sound(found)
    same_ids(found, written)
    if encoding not in ("utf-7", "gb18030", "big5", "shift_jis"):  # these write ASCII alone, or as UTF-8 could
        assert found.labels("node", "city").tolist() == written["nodes"]["city"], "read as other letters"


HEADERS: dict[str, str] = {
    "capitals": "ID,Age,City,Label,Score",
    "spaces": " id , age , city , label , score ",
    "node": "node,age,city,label,score",
    "numbers": "id,1,2,3,4",
    "one-empty": "id,,city,label,score",
    "two-empty": "id,,,label,score",
    "quotes": '"id","age","city","label","score"',
    "commas": 'id,"age, years",city,label,score',
    "line-break": 'id,"age\nyears",city,label,score',
    "long": "id," + "a" * 10_000 + ",city,label,score",
    "same-but-for-case": "id,city,City,label,score",
    "same-but-for-spaces": "id,city, city,label,score",
    "unicode-twice": "id,caf\u00e9,cafe\u0301,label,score",
    "reserved": "id,split_,error,value,node",
    "python": "id,__class__,__dict__,self,lambda",
    "predicted": "id,label_predicted,label_p_a,label,score",
    "two-ids": "id,node_id,city,label,score",
    "id-last": "age,city,label,score,id",
    "missing-id": "x,age,city,label,score",
    "dots": "id,nodes.age,edges.amount,label,score",
    "equals": "id,a=b,city,label,score",
    "colons": "id,node:a,city,label,score",
    "path": "id,../x,/etc/passwd,label,score",
    "nul": "id,a\0b,city,label,score",
    "zero-width": "id,\u200b,city,label,score",
    "star": "id,*,city,label,score",
}


def _header(header: str, place: Place) -> None:
    """Names of columns are kept; what cannot be a table is refused with its file."""
    rest = NODES.split("\n", 1)[1]
    _write(place, EDGES.encode(), f"{header}\n{rest}".encode())
    found = place.load()
    if isinstance(found, Refusal):
        says(found, "nodes.csv")
        return
    sound(found)
    if header.startswith("id,"):
        same_ids(found, WORLD)


def _damage(number: int, place: Place) -> None:
    """A few bytes dropped, doubled, inserted or cut: a sound data set, or one line with the file."""
    rng = random.Random(number)
    files = {"nodes.csv": bytearray(NODES.encode()), "edges.csv": bytearray(EDGES.encode())}
    name = rng.choice(sorted(files))
    data = files[name]
    for _ in range(rng.randint(1, 4)):
        spot, what = rng.randrange(len(data) + 1), rng.randrange(5)
        if what == 0:
            data[spot:spot] = rng.choice(
                [b"\0", b'"', b"'", b",", b"\n", b"\xff", b"\r", b";", b"\t", rng.randbytes(3)]
            )
        elif what == 1:
            del data[spot : spot + rng.randint(1, 30)]
        elif what == 2:
            data[spot:spot] = data[spot : spot + 50]
        elif what == 3 and len(data) > 1:
            data[spot % len(data)] = rng.randrange(256)
        else:
            del data[max(spot, 40) :]
    for file, text in files.items():
        (place.data / file).write_bytes(text)
    found = place.load()
    if isinstance(found, Refusal):
        says(found, name)
        return
    sound(found)
