"""Molecules that are none, odd ones, queries, salts, isotopes: a row each, and no other row's answer moves."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import pandas as pd

from hostile.place import Place, Refusal, heard
from hostile.runs import trained

GOOD = {
    "aspirin": "CC(=O)Oc1ccccc1C(=O)O", "alanine": "C[C@H](N)C(=O)O", "maleic": "OC(=O)/C=C\\C(=O)O",
    "nitro": "[O-][N+](=O)c1ccc(Cl)cc1",
    "methane": "C", "water": "O", "ammonia": "N", "ring-numbers": "C%10CCCCC%10", "big-ring": "C1CCCCCCCCCCC1",
    "carbon-13": "[13CH4]", "caffeine": "CN1C=NC2=C1C(=O)N(C(=O)N2C)C",
    "salt": "[Na+].[Cl-]", "sodium-acetate": "CC(=O)[O-].[Na+]", "hydrochloride": "CCN.Cl",
    "zwitterion": "[NH3+]CC(=O)[O-]", "triple": "C#N", "cumulene": "C=C=C", "spiro": "C1CCC2(CC1)CCCC2",
    "boron": "OB(O)c1ccccc1", "silicon": "C[Si](C)(C)C", "selenium": "C[Se]C", "iodine": "CI", "radical": "[CH3]",
    "explicit-hydrogens": "[CH3][CH2][OH]", "hydrogens-as-atoms": "[H]O[H]",
    "two-parts": "CCO.CCO", "kekule": "C1=CC=CC=C1", "pyrrole": "c1cc[nH]c1", "charged": "[NH4+]", "metal": "[Fe]",
    "atom-maps": "[CH3:1][OH:2]", "long-chain": "C" * 300, "both-bonds": "C-C=C-C",
}  # fmt: skip
BAD = {
    "open-ring": "C1CCC", "open-branch": "C(C", "closed-branch": "CC)C", "open-bracket": "[Fe", "closed-bracket": "Fe]",
    "no-element": "Xx", "valence": "CC(C)(C)(C)C", "not-aromatic": "c1cccc1",
    "no-atom": "[#200]", "nul": "C\0C", "accent": "C\u00e9", "emoji": "\U0001f9ea", "name": "aspirin", "cas": "50-78-2",
    "inchi": "InChI=1S/CH4/h1H4", "inchi-key": "VNWKTOKETHGBQD-UHFFFAOYSA-N",
    "formula": "C2H6O", "mol-block": "\n  x\n\n  0  0", "question": "?", "dashes": "--", "number-text": "123",
    "unclosed-stereo": "C[C@", "bond-first": "=C", "bond-last": "C=", "dot-only": ".", "two-bonds": "C==C",
    "html": "<b>C</b>", "formula-cell": "=CONCAT(A1)", "escape": "C\x1b[31m", "line-break": "CC\nO",
    "too-long": "C" * 100_000, "too-many-parts": "C." * 5000 + "C", "brackets": "[" * 5000, "branches": "C(" * 5000,
    "reaction": "CC>>CO", "reaction-agents": "CC>O>CO", "comma": "C,C", "semicolon": "C;C", "percent": "C%",
    "isotope-huge": "[999999999999C]", "surrogate-like": "\\ud800", "ring-99": "C%99",
}  # fmt: skip
QUERIES = {
    "any-bond": "C~C", "atomic-number": "[#6]", "star": "*", "star-bonded": "C*", "star-mapped": "[*:1]C",
    "or-atoms": "[C,N]", "any-aliphatic": "A", "not-carbon": "[!C]", "ring-atom": "[R]", "degree": "[CX4]",
    "recursive": "[$(CO)]", "and-atoms": "[C;H1]", "ring-bond": "C@C", "dummy-isotope": "[1*]C", "r-group": "[R1]C",
    "any-aromatic": "a", "hydrogen-count": "[CH2,CH3]", "two-stars": "*C*", "wild": "[*]",
}  # fmt: skip
MISSING: dict[str, Any] = {
    "empty": "",
    "space": " ",
    "none": None,
    "nan": float("nan"),
    "na": pd.NA,
    "number": 7,
    "list": ["CCO"],
    "true": True,
    "word-nan": "nan",
    "word-na": "NA",
}
ODD = {
    "space-before": " CCO", "space-after": "CCO ", "tab-after": "CCO\t", "name-after": "CCO ethanol",
    "cx": "CCO |$a;b;c$|", "no-break-space": "CCO\u00a0", "zero-width": "CCO\u200b", "quotes": '"CCO"',
    "line-break-after": "CCO\n", "mark": "\ufeffCCO", "lower": "cco", "deuterium": "[2H]O[2H]", "tritium": "[3H]C",
    "deuteromethane": "[2H]C([2H])([2H])[2H]", "hydrogen": "[H][H]", "proton": "[H+]", "bare-hydrogen": "[H]",
    "dative": "[Fe]->[O]", "quadruple": "C$C", "isotope-zero": "[0C]", "trailing-dot": "C.", "leading-dot": ".C",
    "branch-first": "(C)C", "empty-branch": "C()C", "double-dots": "C..C", "hydride": "[H-]",
    "stereo-lost": "C[C@](C)(C)C", "ring-zero": "C0CC0", "lone-pair": "[He]", "heavy": "[U]", "wild-charge": "[O-3]",
    "charge-huge": "[C+9999]", "explicit-zero": "[CH0]", "aromatic-dash": "c1ccc-cc1",
}  # fmt: skip
KNOWN = ["CCO", "CCCN", "CCCCF"]


def checks() -> Iterator[tuple[str, Callable[[Place], None]]]:
    """Each text at two places between known molecules; then files and lists."""
    for group, texts in (("good", GOOD), ("bad", BAD), ("query", QUERIES), ("missing", MISSING), ("odd", ODD)):
        for name, text in texts.items():
            yield f"{group}-{name}", partial(_among, group, text, len(name) % 4)
    for name, text in {**BAD, **QUERIES, **ODD}.items():
        if isinstance(text, str) and len(text) < 1000:
            yield f"file-{name}", partial(_file, text)
    for name, texts in {
        "bad": list(BAD.values())[:20],
        "queries": list(QUERIES.values()),
        "empty": [None, "", " "],
    }.items():
        yield f"all-{name}", partial(_all_bad, texts)
    for name in ("C1CCC", "aspirin", "C~C", "*", "", "CCO\x1b[31m"):
        yield f"list-{ascii(name)[1:-1]}", partial(_list, name)
    for name in ("good", "bad", "query"):
        yield f"training-with-{name}", partial(_training, name)


@cache
def _reference() -> list[float]:
    return trained("smiles").predict(pd.DataFrame({"id": ["a", "b", "c"], "smiles": KNOWN}))["size_predicted"].tolist()


def _among(group: str, text: Any, where: int, place: Place) -> None:
    """One row among three that are known: they answer as ever, and it has an answer or a reason."""
    cells: list[Any] = [*KNOWN[:where], text, *KNOWN[where:]]
    frame = pd.DataFrame({"id": [f"x{number}" for number in range(4)], "smiles": pd.Series(cells, dtype=object)})
    with heard() as lines:
        found = place.attempt(lambda: trained("smiles").predict(frame))
    assert not isinstance(found, Refusal), f"one molecule refuses all: {found}"
    assert len(found) == 4, f"{len(found)} rows for 4"
    assert found["id"].tolist() == ["x0", "x1", "x2", "x3"]
    shown = found["smiles"].iloc[where]
    assert shown is text or shown == text or pd.isna(shown) == pd.isna(text), f"{text!r} came back as {shown!r}"
    others = [float(value) for row, value in enumerate(found["size_predicted"]) if row != where]
    for one, other in zip(others, _reference(), strict=True):
        assert abs(one - other) < 1e-5, f"a known molecule answers {one}, not {other}"
    reason = found["error"].iloc[where] if "error" in found else None
    reason = None if reason is None or pd.isna(reason) else str(reason)
    answer = found["size_predicted"].iloc[where]
    assert (reason is None) == bool(pd.notna(answer)), f"answer {answer} and reason {reason!r}"
    if reason is not None:
        assert f"row {where + 1}" in reason, f"no row in {reason!r}"
        assert "smiles" in reason, f"no column in {reason!r}"
        assert "\n" not in reason, f"not one line: {reason!r}"
        assert len(reason) < 500, f"a reason of {len(reason)} characters"
    assert group != "good" or reason is None, f"a molecule was refused: {reason}"
    assert group not in ("bad", "missing", "query") or reason is not None, f"{text!r} was answered as a molecule"
    if isinstance(text, str) and group == "odd" and ("[2H]" in text or "[3H]" in text) and reason is None:
        bare = text.replace("[2H]", "[H]").replace("[3H]", "[H]")
        plain = trained("smiles").predict(pd.DataFrame({"id": ["x"], "smiles": [bare]}))
        same = abs(float(plain["size_predicted"].iloc[0]) - float(answer)) < 1e-5
        assert same or any("isotop" in line for line in lines), (
            "an isotope of hydrogen became an atom, and nothing says so"
        )


def _file(text: str, place: Place) -> None:
    """The same through the command: a row for each row, the text as it is written."""
    cells = ["CCO", text, "CCCN"]
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\n").writerows(
        [("id", "smiles"), *((f"x{n}", cell) for n, cell in enumerate(cells))]
    )
    (place.data / "m.csv").write_text(file.getvalue(), newline="")
    screen = place.command("predict", trained("smiles").path, place.data / "m.csv", "--to", place.folder / "p.csv")
    if screen.code == 2:
        line = place.refusal(screen)
        assert "m.csv" in line, f"the file is not named: {line}"
        assert "\0" in text, f"one molecule refuses a file: {line}"
        return
    with (place.folder / "p.csv").open(newline="", encoding="utf-8") as written:
        rows = list(csv.DictReader(written))
    assert [row["smiles"] for row in rows] == cells, f"{text!r} came back as {rows[1]['smiles']!r}"
    assert abs(float(rows[0]["size_predicted"]) - _reference()[0]) < 1e-5
    assert abs(float(rows[2]["size_predicted"]) - _reference()[1]) < 1e-5


def _all_bad(texts: list[Any], place: Place) -> None:
    """Nothing can be answered: every row is there, with its reason; or a line says so."""
    frame = pd.DataFrame({"id": range(len(texts)), "smiles": pd.Series(texts, dtype=object)})
    found = place.attempt(lambda: trained("smiles").predict(frame))
    if isinstance(found, Refusal):
        return
    assert len(found) == len(texts)
    assert found["error"].notna().all(), "a row without a reason"


def _list(text: str, place: Place) -> None:
    found = place.attempt(lambda: trained("smiles").predict(["CCO", text, "CCCN"]))
    assert not isinstance(found, Refusal), f"one molecule refuses all: {found}"
    assert len(found) == 3
    assert pd.notna(found["error"].iloc[1]), f"{text!r} was answered"
    assert abs(float(found["size_predicted"].iloc[0]) - _reference()[0]) < 1e-5


def _training(name: str, place: Place) -> None:
    """Bad molecules among the data to learn from are rows without a part."""
    texts = list({"good": GOOD, "bad": BAD, "query": QUERIES}[name].values())[:18]
    frame = pd.DataFrame({"smiles": [*(("C" * k + "O") for k in range(1, 21)), *texts]})
    frame["size"] = [float(k) for k in range(len(frame))]
    made = place.prepare("graph:size", frame)
    assert not isinstance(made, Refusal), f"refused: {made}"
    codes = made.splits["graph"].codes(len(frame))
    if name != "good":
        assert (codes[20:] == -1).all(), "a row that is no molecule is learnt from"
        assert sorted(made.data.problems["graphs"]) == list(range(20, len(frame)))
    assert (codes[:20] >= 0).all()
