"""Texts that are no JSON, CSV that is no table, heads of requests, and requests that are too large."""

from __future__ import annotations

import gzip
import json
import random
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from serving_client import JSON

from hostile.place import Place
from hostile.served import check_answer, rows, send_body, send_bytes, service, valid


def texts() -> Iterator[tuple[str, Callable[[Place], None]]]:
    text = json.dumps(valid("smiles") | {"coverage": 0.5, "keep": "all", "top": None})
    for end in range(0, len(text) - 1, 3):
        yield f"cut-{end}", partial(send_bytes, text[:end].encode(), True)
    for coding in ("utf-16", "utf-16-be", "utf-32", "utf-8-sig", "utf-7", "cp037", "cp500"):
        yield f"coded-{coding}", partial(send_bytes, (text + "é").encode(coding, "replace"), True)
    accent = text.replace("CCO", "é")
    for coding in ("latin-1", "cp1252", "shift-jis", "koi8-r", "utf-8"):
        yield f"accent-{coding}", partial(send_bytes, accent.encode(coding, "replace"), None)
    whole = {
        "gzip": gzip.compress(text.encode(), mtime=0),
        "zlib": zlib.compress(text.encode()),
        "nul": b"\0" * 100,
        "null": b"null",
        "number": b"1",
        "text": b'"x"',
        "list": b"[]",
        "true": b"true",
        "space": b"  \n ",
        "bom": b"\xef\xbb\xbf{}",
        "single-quotes": text.replace('"', "'").encode(),
        "comment": b"/* */" + text.encode(),
        "twice": (text * 2).encode(),
        "trailing-comma": text[:-1].encode() + b",}",
        "form": b"run=smiles&smiles=CCO",
        "xml": b"<run>smiles</run>",
        "yaml": b"run: smiles",
        "lines": b"{}\n{}",
        "pickle": b"\x80\x04}\x94.",
        "html": b"<script>alert(1)</script>",
        "nan": b"NaN",
        "infinity": b"-Infinity",
        "hex": b'{"top": 0x10}',
        "octal": b'{"top": 010}',
        "plus": b'{"top": +1}',
        "dot": b'{"coverage": .5}',
        "python": b"{'run': None}",
        "undefined": b"undefined",
        "control": b'{"run": "a\x01b"}',
        "half-pair": b'{"run": "\\ud800", "smiles": ["C"]}',
        "half-pair-cell": b'{"run": "smiles", "smiles": ["\\udfff"]}',
        "half-pair-name": b'{"\\ud800": 1}',
        "overlong": b'{"run": "\xc0\xaf"}',
        "surrogate-bytes": b'{"run": "\xed\xa0\x80"}',
        "beyond-unicode": b'{"run": "\xf5\x80\x80\x80"}',
        "same-name": b'{"run": "smiles", "run": "graph", "smiles": ["C"]}',
        "same-name-in-row": b'{"run": "joint", "edges": [{"source": "a", "source": "b"}]}',
    }
    for name, content in whole.items():
        yield f"whole-{name}", partial(send_bytes, content, True)
    for depth in (13, 50, 500, 990, 1_000, 5_000, 100_000):
        for name, content in (
            ("lists", b"[" * depth + b"]" * depth),
            ("open", b"[" * depth),
            ("objects", b'{"a":' * depth + b"1" + b"}" * depth),
            ("mixed", b'[{"a":' * depth + b"1" + b"}]" * depth),
        ):
            yield f"deep-{name}-{depth}", partial(send_bytes, content, True)
    for digits in (19, 40, 400, 4_299, 4_301, 100_000):
        for form in ("%s", "-%s", "%s.0", "0.%s", "%se5", "1e%s"):
            content = ('{"run": "smiles", "smiles": ["C"], "top": ' + form % ("9" * digits) + "}").encode()
            yield f"digits-{digits}-{form % 'N'}", partial(send_bytes, content, True)
    for seed in range(40):
        content = random.Random(seed).randbytes(1 + seed * seed)
        yield f"random-{seed}", partial(send_bytes, content, True)


def csv() -> Iterator[tuple[str, Callable[[Place], None]]]:
    head = "source,target,amount,kind\n"
    texts = {
        "empty": "",
        "head-alone": head,
        "no-break": head.strip(),
        "ragged": head + "a,b\n",
        "long-row": head + "a,b,1,x,y,z\n",
        "open-quote": head + '"a,b,1,x\n',
        "nul": head + "a\0,b,1,x\n",
        "binary": "\x01\x02\x03",
        "one-column": "source\na\n",
        "tabs": head.replace(",", "\t") + "n0\tn1\t1\tx\n",
        "semicolons": head.replace(",", ";") + "n0;n1;1;x\n",
        "return": head.replace("\n", "\r") + "n0,n1,1,x\r",
        "same-names": "source,source,target\na,b,c\n",
        "no-names": ",,,\n1,2,3,4\n",
        "blank-lines": "\n\n\n" + head,
        "bom": "\ufeff" + head + "n0,n1,1,x\n",
        "formula": head + "=1+1,@x,-2,+3\n",
        "json-inside": '[{"source": 1}]',
        "many-quotes": head + '"' * 1001,
        "line-separator": head + "a\u2028b,c,1,x\n",
        "long-cell": head + "n0,n1," + "9" * 50_000 + ",x\n",
        "many-columns": ",".join(f"c{n}" for n in range(2_000)) + "\n" + ",".join("1" * 2_000) + "\n",
        "many-rows": head + "n0,n1,1,x\n" * 400,
        "quoted-rows": head + '"n0","n1",1,x\n' * 400,
        "path": "/etc/passwd",
        "url": "https://example.org/x.csv",
    }
    for table in ("edges", "nodes", "graphs"):
        for name, text in texts.items():
            yield f"csv-{table}-{name}", partial(send_body, "/predict", valid() | {table: text}, None)


def heads() -> Iterator[tuple[str, Callable[[Place], None]]]:
    kinds = [
        "", "text/plain", "text/csv", "application/xml", "multipart/form-data", "application/x-www-form-urlencoded",
        "application/octet-stream", "application/json; charset=latin-1", "application/json; charset=utf-16",
        "application/jsonx", "json", "*/*", "application/json, text/html", "application/ld+json",
        "application/json;;;", "application/json; boundary=x",
    ]  # fmt: skip
    for number, kind in enumerate(kinds):
        yield f"type-{number}", partial(_head, {"content-type": kind}, None)
    for coding in ("gzip", "deflate", "br", "zstd", "x-gzip", "compress", "gzip, gzip", "identity, gzip", "unknown"):
        yield f"coding-{coding}", partial(_head, {**JSON, "content-encoding": coding}, None)
    for name, length in {"bomb": 10_000_000, "large": 500_000}.items():
        content = gzip.compress(b" " * length, mtime=0)
        yield f"bomb-{name}", partial(_head, {**JSON, "content-encoding": "gzip"}, content)
        yield f"bomb-undeclared-{name}", partial(send_bytes, content, True)
    for length in ("999999999999", "9" * 30, "400001"):
        yield f"length-{len(length)}", partial(_head, {**JSON, "content-length": length}, None)
    for query in ("run=smiles", "a[]=1", "%00", "q=" + "x" * 5_000, "../../x", "smiles=CCO&run=smiles"):
        yield f"query-{query[:12]}", partial(_address, "POST", f"/predict?{query}")
    for path in (
        "/predict/",
        "/predict/smiles",
        "/Predict",
        "/..%2f..%2fetc/passwd",
        "/%00",
        "/runs/smiles",
        "/static/../config.json",
        "/run-smiles/model.safetensors",
        "/.git/config",
        "/redoc",
        "/" + "x" * 5_000,
        "/predict;x",
        "/\u202e",
    ):
        for method in ("GET", "POST"):
            yield f"{method}-{path[:24]!r}", partial(_address, method, path)
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "FOO", "HEAD"):
        if method != "HEAD":
            yield f"method-{method}", partial(_address, method, "/predict")
    for path in ("/health", "/metrics", "/runs", "/docs", "/", "/openapi.json"):
        yield f"post-{path}", partial(_address, "POST", path)


def _head(headers: Mapping[str, str], content: bytes | None, place: Place) -> None:
    sent = json.dumps(valid("smiles")).encode() if content is None else content
    check_answer(service().client.post("/predict", content=sent, headers=dict(headers)), True)


def _address(method: str, address: str, place: Place) -> None:
    content = json.dumps(valid("smiles")).encode() if method == "POST" else None
    check_answer(service().client.request(method, address, content=content, headers=JSON), True)


def sizes() -> Iterator[tuple[str, Callable[[Place], None]]]:
    edge = dict(rows("edges")[0])
    for name, body in {
        "rows": valid() | {"edges": [edge] * 301},
        "smiles": {"run": "smiles", "smiles": ["C"] * 301},
        "letters": {"run": "smiles", "smiles": ["C" * 100] * 100},
        "atoms": {"run": "smiles", "smiles": ["C" * 29] * 250},
        "one-molecule": {"run": "smiles", "smiles": ["C" * 7_000]},
        "body": valid() | {"edges": [edge | {"note": "x" * 10_000}] * 50},
        "pairs": valid("link") | {"pairs": [{"source": "n0", "target": "n1"}] * 301},
        "top": valid("link") | {"top": 301},
        "explained": {"run": "smiles", "smiles": ["CCO"] * 9, "top": 6},
        "explained-twice": {"run": "smiles", "smiles": ["CCO"] * 9, "rows": ["CCO"]},
    }.items():
        yield f"size-{name}", partial(send_body, "/explain" if name.startswith("explained") else "/predict", body, True)
