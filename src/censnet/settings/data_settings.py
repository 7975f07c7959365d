"""Settings of the data: split, time, and encoding of features."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from censnet.data.tables.schema import Descriptors, Features, Hydrogens, Standardize
from censnet.settings.section import OrNone, Section, shares


class DataSettings(Section):
    """The data: split, and encoding of features."""

    split: Literal["auto", "random", "ratio", "stratified", "scaffold", "label-rate", "time", "column", "file"] = Field(
        "auto",
        description="how labeled samples are split into train, validation and test; auto uses a split that comes "
        "with the data, splits edges and links that have times (data.time) by time, or draws one, as random does",
    )
    split_column: str | None = Field(
        None, description="column of a split by time or by column; where edges have times, none splits by these"
    )
    time: str | None = Field(
        None, description="column of edges that says when each one happened: numbers, dates or timestamps"
    )
    split_times: tuple[str | float, str | float] | None = Field(
        None,
        description="times at which validation and test begin, such as 2024-01-31,2024-03-01, where the split is by "
        "time; none splits by data.fractions",
    )
    label_delay: str | float = Field(
        0.0,
        description="time after which the label of an edge is known, such as 7d (s, m, h, d or w), or a number in the "
        "unit of data.time; where the split is by time, later labels are no inputs",
    )
    split_index: int | None = Field(
        None, ge=0, description="number of the split, from 0, where masks in the data have a column for each split"
    )
    split_file: str | None = Field(None, description="splits.csv of another run, to use its split")
    split_seed: int | None = Field(
        None, ge=0, lt=2**31, description="seed of the split; none is the seed of the training"
    )
    fractions: Annotated[tuple[float, float, float], shares(0)] = Field(
        (0.8, 0.1, 0.1), description="shares of train, validation and test samples"
    )
    link_fractions: Annotated[tuple[float, float, float], shares(1e-9)] = Field(
        (0.85, 0.05, 0.10), description="shares of train, validation and test links; by time, of edges"
    )
    label_rate: float = Field(
        0.05, gt=0, lt=0.5, description="share of the samples that are for training, with the split label-rate"
    )
    directed: bool | Literal["auto"] = Field(
        "auto",
        description="whether edges go from source to target; auto is as networkx says, and otherwise true unless each "
        "edge is there twice, once in each direction",
    )
    features: Features = Field(
        "rich",
        description="encoding of molecules, word counts and citation links: rich, or as in the paper or the released"
        " code",
    )
    descriptors: Descriptors = Field(
        False,
        description="whether the head of a molecule also reads its RDKit descriptors, which takes longer; compare "
        "trains without and with them, and validation selects; auto is compare for 200 to 2,000 molecules, else false",
    )
    standardize: Annotated[Standardize, OrNone] = Field(
        "none",
        description="standardization of molecules: the largest fragment, the parent (that without charges), or the "
        "canonical tautomer of the parent",
    )
    hydrogens: Hydrogens = Field(
        "implicit",
        description="hydrogens of molecules: explicit makes each an atom with its bond, implicit counts them at their "
        "heavy atom",
    )
