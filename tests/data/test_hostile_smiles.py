"""Whatever a SMILES column holds, reading it ends soon, in a graph or in a problem with a reason."""

from __future__ import annotations

import os
import re
import time
from functools import partial

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from censnet.data.molecules.featurize import Molecules, atom_positions, canonical, featurize, read_smiles
from censnet.data.tables.schema import MoleculeReading

EXAMPLES = max(3 * int(os.environ.get("CENSNET_HOSTILE", "200")) // 4, 20)
REAL = ["CC(=O)Oc1ccccc1C(=O)O", "C[C@H](N)C(=O)O", "OC(=O)/C=C\\C(=O)O", "[O-][N+](=O)c1ccc(Cl)cc1", "[Na+].[Cl-]"]
SIGNS = "CNOFPSIBclnos[]()=#$:/\\.@+-%123490HH* ~>{}!?\t\n\0é"


def check(read: Molecules, count: int) -> None:
    """Each input is a graph or a problem, and the graphs are sound."""
    assert sorted([*read.rows.tolist(), *read.problems]) == list(range(count))
    for reason in read.problems.values():
        assert re.match(r"(a query, |a reaction, |an R-.* atom, |an extended SMILES, )?not a molecule: |no SM", reason)
        assert "\n" not in reason
        assert reason.isprintable()
        assert len(reason) < 400
    assert (read.graphs is None) == (len(read.rows) == 0)
    if read.graphs is not None:
        assert torch.isfinite(read.graphs.nodes).all()
        assert torch.isfinite(read.graphs.edges).all()
        assert read.graphs.batch(torch.arange(len(read.graphs))).num_nodes == len(read.graphs.nodes)


@pytest.mark.slow
@given(st.lists(st.text(alphabet=SIGNS, max_size=30), max_size=8))
@settings(max_examples=EXAMPLES, deadline=5000)
@example(["[#200]", "C" * 50, "[C+999]", "[99999999999999999999999C]", "C%(1000000)CC%(1000000)", "C11", "\ud800"])
@example(
    ["C~C", "[Fe]->[O]", "C$C", "[2H]C([2H])[2H]", "[H]", "[H][H]", "[H+]", "*", "[*:1]C", "[0C]", "C.", ".", "(C)"]
)
def test_random_texts(texts):
    check(featurize(texts), len(texts))
    check(featurize(texts, "paper"), len(texts))


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A real SMILES with a few characters dropped, doubled, swapped or replaced."""
    text = list(draw(st.sampled_from(REAL)))
    for _ in range(draw(st.integers(1, 4))):
        if not text:
            break
        place = draw(st.integers(0, len(text) - 1))
        kind = draw(st.sampled_from(["drop", "double", "replace", "cut", "swap"]))
        if kind == "drop":
            del text[place]
        elif kind == "double":
            text.insert(place, text[place])
        elif kind == "replace":
            text[place] = draw(st.sampled_from(SIGNS))
        elif kind == "cut":
            text = text[place:]
        else:
            text.append(text.pop(place))
    return "".join(text)


@pytest.mark.slow
@given(st.lists(mutated(), max_size=10))
@settings(max_examples=EXAMPLES, deadline=5000)
def test_mutated_molecules(texts):
    read = featurize(texts)
    check(read, len(texts))
    spelled = canonical(texts)
    assert [n for n, text in enumerate(spelled) if text is None] == sorted(read.problems)
    assert len(read_smiles(texts, scaffolds=True).scaffolds) == len(texts)


@given(st.lists(mutated(), max_size=10), st.sampled_from(["none", "parent"]))
@settings(max_examples=EXAMPLES // 3, deadline=None)
def test_mutated_molecules_are_read_and_their_atoms_numbered_in_every_way(texts, standardize):
    reading = MoleculeReading(isotopes=False, dummies=True, standardize=standardize)
    read = featurize(texts, reading=reading)
    check(read, len(texts))
    sizes = [] if read.graphs is None else read.graphs.node_offset.diff().tolist()
    assert [len(found) for found in atom_positions(texts, reading=reading) if found] == sizes


def grid(side: int) -> str:
    """A square net of dummy atoms, which have no valence to forbid it, written as rows that only rings join."""
    rows = []
    for r in range(side):
        ends = [
            f"%({r * side + c + 1})" * (r < side - 1) + f"%({(r - 1) * side + c + 1})" * (r > 0) for c in range(side)
        ]
        rows.append("".join(f"*{end}" for end in ends))
    return ".".join(rows)


LARGE = {
    "characters": ("C" * 100_000, "100,000 characters, at most 20,000"),
    "atoms": ("C" * 19_999, "19,999 atoms, at most 3,000"),
    "fragments": ("C." * 9_000 + "C", "more than 100 parts"),
    "three-rings": ("C1CC1" * 700, "more than 500 rings"),
    "net": (grid(30), "more than 500 rings"),
    "brackets": ("[" * 20_000, "unclosed bracket"),
    "parentheses": ("C(" * 9_000, "unclosed parenthesis"),
    "ring numbers": ("C1" * 9_999, ""),
    "aromatic chain": ("c" * 3_000, ""),
    "percent": ("%" * 20_000, "not the syntax"),
    "double bonds": ("F/C=C/" * 3_000 + "F", ""),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", LARGE)
def test_large_texts_end_soon_with_a_reason(case):
    text, reason = LARGE[case]
    start = time.perf_counter()
    read = featurize([text, "CCO"])
    check(read, 2)
    assert reason in read.problems[0]
    assert canonical([text]) == [None]
    assert read_smiles([text], scaffolds=True).scaffolds == [None]
    assert time.perf_counter() - start < 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "C" * 3_000,
        "C=C" * 990,
        "C(C)(C)" * 990 + "C",
        "C1CC1" * 499,
        grid(20),
        "C[C@H](F)Cl." * 99 + "C",
        "C(" * 1500 + "C" + ")" * 1500,
    ],
)
def test_the_largest_that_are_read_take_seconds_at_most(text):
    dummies = MoleculeReading(dummies=True)
    for read in (featurize, canonical, partial(read_smiles, scaffolds=True)):
        start = time.perf_counter()
        read([text], reading=dummies)
        assert time.perf_counter() - start < 5, read
    assert featurize([text], reading=dummies).problems == {}


def test_things_that_are_no_text_are_missing():
    read = featurize([None, float("nan"), 7, b"CCO", ["CCO"], "CCO", "   "])  # type: ignore[list-item]
    assert read.rows.tolist() == [5]
    assert set(read.problems.values()) == {"no SMILES given"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("C1CCC", "unclosed ring"),
        ("C%12CC", "unclosed ring"),
        ("C(C", "unclosed parenthesis"),
        ("CC)C", "closing parenthesis without an opening one"),
        ("[Fe", "unclosed bracket"),
        ("Fe]", "unclosed bracket"),
        ("Xx", "not the syntax of SMILES"),
        ("CC(C)(C)(C)C", "Explicit valence for atom # 1 C, 5, is greater than permitted"),
        ("c1cccc1", "Can't kekulize mol. Unkekulized atoms: 0 1 2 3 4"),
        ("[#200]", "SMARTS; write each atom as its element"),
        (
            "n1cccc1",
            "Can't kekulize mol. Unkekulized atoms: 0 1 2 3 4; a ring nitrogen that has a hydrogen is written [nH]",
        ),
        ("[D]O[D]", "deuterium is written [2H]"),
        ("InChI=1S/CH4/h1H4", "an InChI, expected SMILES"),
        ("LFQSCWFLJHTTHZ-UHFFFAOYSA-N", "an InChIKey, expected the SMILES"),
        ("64-17-5", "a CAS number, expected the SMILES"),
        ("C\0C", "a character that SMILES does not have"),
        ("Cé", "a character that SMILES does not have"),
    ],
)
def test_the_reason_says_what_is_wrong(text, reason):
    assert f"({reason}" in featurize([text]).problems[0]


@pytest.mark.parametrize(
    ("text", "head"),
    [
        *(
            (text, "a query")
            for text in ("[#6]~[#7]", "[C,N]C", "[!C]", "[C;H2]", "[CX4]", "C@C", "[$(CC)]C", "C~C", "[a]")
        ),
        *((text, "an R-group or dummy atom") for text in ("*", "*C", "[*:1]C", "[1*]CC", "[R1]C", "[R]", "C[0*]")),
        *((text, "a reaction") for text in ("CCO>>CC=O", "C>O>C", "CC.O>>CCO")),
        *((text, "an extended SMILES") for text in ("CC |^1:0|", "*C |$_R1;$|", "CC* |$;;R1$|", "CCO |Sg:n:1::ht|")),
    ],
)
def test_what_stands_for_many_molecules_or_none_is_refused_with_what_to_do(text, head):
    (problem,) = featurize([text]).problems.values()
    assert problem.startswith(f"{head}, not a molecule: ")
    assert re.search(r"\((SMARTS; write|put an atom|give one molecule|.* give it as SMILES alone)", problem)
    assert canonical([text]) == [None]
