"""Files of the sets whose edges carry data, found where the built-in sets are found and checked by SHA-256."""

from __future__ import annotations

from pathlib import Path

from censnet.data.datasets.catalogue import DataFile, WheelFile
from censnet.data.datasets.download import find_editions

FILES = {
    file.name: file
    for file in (
        DataFile(
            "bitcoin_otc.csv", "edges/bitcoin_otc.csv", 1011180,
            "76bd9d8f1d3ff9a1813d9fc8e6902a0ee4d0a2f8c1003842dbc9ec79149ab60c",
        ),
        DataFile(
            "case57.npz", "edges/case57.npz", 489771,
            "7df2198b1a3ee19087ee4d26e5387706b32ac95403be374aa1d9e891035fcc18",
        ),
        DataFile(
            "case118.npz", "edges/case118.npz", 2344874,
            "0354b0af1fb5a8a87a73c0839555e65174614cc5c1db52dfe604e6666e31e10a",
        ),
        DataFile(
            "Net3.npz", "edges/Net3.npz", 625904,
            "f0aab001bc96632d705eaec87440d81af7538944f60fe092185f38ceda62ab70",
        ),
        DataFile(
            "ky4.npz", "edges/ky4.npz", 4046607,
            "8686feeb8d8ff0696ebba03c326d801cb7dbae71d2cdc5b3ec2661edfbeb7447",
        ),
        DataFile(
            "bonds.csv.gz", "alfabet/bonds.csv.gz", 17477960,
            "782c3d04a50598aeabd3c67733e28f81d9274f2acea285920a87f141cafbb5f2",
            member=WheelFile("alfabet==0.1.0", "alfabet/model_files/20201012_bonds_for_neighbors.csv.gz"),
        ),
    )
}  # fmt: skip


def find_edge_file(name: str) -> Path:
    """The path of a file in `FILES`: in the folder in `CENSNET_DATA`, in the cache, or fetched from its wheel.

    Raises:
        DataError: the file is nowhere to be had, or has other bytes.
    """
    return find_editions(name, ((FILES[name],),))[name]
