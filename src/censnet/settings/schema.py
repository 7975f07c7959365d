"""All settings of a training and their defaults."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from censnet.data.tables.schema import Features, Standardize
from censnet.errors import quote
from censnet.nn.encoder import ACTIVATIONS
from censnet.nn.heads import Pool
from censnet.nn.kernels import KERNELS
from censnet.nn.layers import LAYERS, Gate, GateInit, SelfWeight, Variant
from censnet.nn.norms import Norm
from censnet.ops.normalization import Normalization

PRESETS = ("strong", "paper", "released")
Gates = Literal["learned", "frozen"]
Recipe = Literal["low_label", "high_label"]
OF_LINKS = {
    "model": ("decoder", "latent", "diffusion_steps", "positive_weight"),
    "training": ("edge_mask_ratio", "negative_ratio"),
}
DROPOUT = 0.1  # of "auto"
BATCHES = 8, 128  # graphs in a batch of "auto", at least and at most
DIFFUSION_STEPS = 4  # steps of "auto"
STEPS = 25  # of an epoch, that it leaves where it can
WIDEST = 2**16  # channels of a layer
DEEPEST = 1000  # layers
LAYER_PATTERN = f"^[{''.join(LAYERS)}]+$"
MOST = 10**9  # of what is counted
MANY = 100  # labels of nodes to learn from, from which on "auto" tries the network for many
OneOrSeveral = BeforeValidator(lambda value: [value] if isinstance(value, int | float) else value)
OneWord = BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
OrNone = BeforeValidator(lambda value: "none" if value is None else value)  # here `none` is a word like the others


def _shares(least: float) -> AfterValidator:
    """Shares of training, validation and test: they add up to 1, the first is above 0, the others at least `least`."""

    def check(shares: tuple[float, float, float]) -> tuple[float, float, float]:
        if abs(sum(shares) - 1) > 1e-6:
            raise ValueError(f"has {', '.join(map(str, shares))}, which add up to {sum(shares):g}, expected 1")
        if shares[0] <= 0 or min(shares) < least:
            which = "each above 0" if least else "the first above 0 and none below"
            raise ValueError(f"has {', '.join(map(str, shares))}, expected {which}")
        return shares

    return AfterValidator(check)


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _truth_is_no_number(cls, values: Any) -> Any:
        """Refuse `true` where a number is expected, rather than read it as 1."""
        for name, value in values.items() if isinstance(values, dict) else ():
            field = cls.model_fields.get(name)
            kinds = () if field is None else (field.annotation, *get_args(field.annotation))
            if isinstance(value, bool) and kinds and bool not in kinds:
                raise ValueError(f"{name} is {str(value).lower()}, expected a number or a word")
        return values


class ModelSettings(_Settings):
    """The network: a CensNet and what its heads read. Names and meanings are those of `CensNet` and the heads."""

    layers: str = Field(
        "NEN", pattern=LAYER_PATTERN, max_length=DEEPEST, description="node (N) and edge (E) layers, in order"
    )
    hidden: int = Field(32, ge=1, le=WIDEST, description="channels of each node and edge between layers")
    pre_layers: int = Field(
        0, ge=0, le=DEEPEST, description="how often nodes are mapped to hidden channels before the first layer"
    )
    edge_pre_layer: bool = Field(False, description="whether edges are, together with their two nodes")
    dropout: Annotated[float, Field(ge=0, lt=1)] | Literal["auto"] = Field(
        0.5,
        description=f"share of the channels dropped after each layer; auto is {DROPOUT} where classes are told apart, "
        "and 0 where all targets are numbers",
    )
    feature_dropout: float = Field(
        0.0, ge=0, lt=1, description="share of the words of each node, and of other sparse features, that a step drops"
    )
    norm: Norm | None = Field(None, description="what brings the rows to one scale after each layer")
    residual: bool | Literal["rezero"] = Field(
        False,
        description="whether a layer adds to what it was given; rising is by a share that is learnt and starts at 0, "
        "so that a deep network starts as a shallow one",
    )
    activation: Annotated[str, OrNone] = Field("relu", description="what follows each layer: " + ", ".join(ACTIVATIONS))
    variant: Variant = Field("paper", description="the rules as printed, or as the authors' code has them")
    bias: bool = Field(True, description="whether a layer adds a learnt vector")
    self_weight: SelfWeight | None = Field(None, description="what a row gives itself; none is as the variant has it")
    heads: Annotated[int, Field(ge=1, le=WIDEST)] | Literal["per_channel"] = Field(
        1, description="gates of each row, each for its share of the channels; all is one for each channel"
    )
    gate: Gate = Field("linear", description="how the other side weighs what passes")
    gate_init: GateInit = Field("signed", description="how the vectors p of gates start: of either sign, or positive")
    normalization: Normalization | None = Field(
        None, description="how sums are scaled by degrees; none is as the variant has it"
    )
    kernel: str = Field("hop", description="how far one layer reaches: " + ", ".join(KERNELS))
    kernel_options: dict[str, int | float | list[int]] = Field(
        default_factory=dict, description='options of the kernel, such as {"steps": 10}'
    )
    last_layer_is_head: bool = Field(
        False, description="whether the last layer gives the answer itself, without a head"
    )
    clip_to_label_range: bool = Field(False, description="whether numbers are clipped to the range of training labels")
    head: list[Annotated[int, Field(ge=1, le=WIDEST)]] = Field(
        default_factory=list, max_length=DEEPEST, description="widths of the layers between embedding and answer"
    )
    edge_head_reads_nodes: bool = Field(
        False, description="whether an edge's answer reads its two nodes beside the edge"
    )
    pool: list[Pool] = Field(
        default=["mean"],
        min_length=1,
        description="how rows become one vector for a graph; a sum is divided by the rows of a usual graph",
    )
    pool_norm: Norm | None = Field(None, description="what brings pooled means to one scale; sums keep a graph's size")
    pool_from: Literal["nodes", "edges", "both"] = Field("nodes", description="which rows do")
    decoder: Literal["inner_product", "pairwise", "cosine"] = Field(
        "inner_product",
        description="how links are told: the paper's inner product, pair by pair with an edge's embedding, or without",
    )
    latent: int = Field(32, ge=1, le=WIDEST, description="channels of the embedding that links are told from")
    diffusion_steps: Annotated[int, Field(ge=0, le=100)] | Literal["auto"] = Field(
        "auto",
        description=f"steps of the diffusion embedding that link scores also use; auto is {DIFFUSION_STEPS}, or 0 "
        "(none) where nodes have sparse features, such as words; the inner product uses none",
    )
    positive_weight: Annotated[float, Field(gt=0)] | Literal["balanced"] = Field(
        1.0, description="how much more a link counts than none, or balanced"
    )

    @model_validator(mode="after")
    def _known_names(self) -> ModelSettings:
        for name, value, known in (("activation", self.activation, ACTIVATIONS), ("kernel", self.kernel, KERNELS)):
            if value not in known:
                raise ValueError(f"{name} is {quote(value)}, expected one of {', '.join(known)}")
        if self.hidden % self.num_heads:
            raise ValueError(f"heads is {self.heads}, expected all, or a divisor of hidden, which is {self.hidden}")
        return self

    @property
    def num_heads(self) -> int:
        """How many gates each row has."""
        return self.hidden if self.heads == "per_channel" else self.heads

    def dropout_for(self, numbers: bool) -> float:
        """The share of channels dropped, where all targets are numbers or some are classes.

        A dropped share changes the spread of what a norm has brought to one scale, in training alone. Of a class the
        sign of an answer is left; a number is off.
        """
        if self.dropout == "auto":
            return 0.0 if numbers else DROPOUT
        return self.dropout


class TrainingSettings(_Settings):
    """The loop: optimiser, schedule, batches, and when to stop."""

    epochs: int = Field(300, ge=1, le=MOST, description="passes over the training rows, at most")
    learning_rate: float = Field(0.01, gt=0, description="the highest, where a schedule changes it")
    optimizer: Literal["adam", "adamw"] = Field("adam", description="how weights follow their gradients")
    weight_decay: float = Field(5e-4, ge=0, description="pull of all weights towards 0")
    weight_decay_by_name: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict,
        description="weight decay of parameters whose name begins or ends so, such as encoder; the last that fits",
    )
    schedule: Literal["constant", "cosine", "warmup-cosine"] = Field(
        "constant", description="course of the learning rate"
    )
    ema_decay: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="share of the running mean of the weights that a step leaves: 0.98 is about the last 50 steps; the "
        "mean is what is validated and kept",
    )
    warmup: float = Field(0.0, ge=0, lt=1, description="share of the steps in which the learning rate rises")
    max_grad_norm: float | None = Field(None, gt=0, description="largest length of the gradient")
    lp_penalty: float = Field(0.0, ge=0, description="weight of the l^p penalty of the paper's regression loss")
    lp_power: float = Field(2.0, ge=1, description="the p of that penalty")
    sampling: Literal["auto", "full", "neighbors", "proportional"] = Field(
        "auto", description="what a step sees of one big graph"
    )
    batch_size: Annotated[int, Field(ge=1, le=MOST)] | Literal["auto"] = Field(
        64,
        description=f"graphs, or rows to learn from, in each step; auto is the power of 2 from {BATCHES[0]} to "
        f"{BATCHES[1]} that leaves an epoch {STEPS} steps or more, if one does",
    )
    fanout: int = Field(
        15, ge=1, le=MOST, description="edges drawn around each node that is sampled; half at each further hop"
    )
    max_steps_per_epoch: int | None = Field(
        None,
        ge=1,
        le=MOST,
        description="most steps of an epoch when parts of a graph are sampled; none: every row comes once",
    )
    imbalance: Annotated[Literal["none", "weights", "sampling"], OrNone] = Field(
        "none", description="how rare classes are made to count"
    )
    pseudo_label_weights: Annotated[list[Annotated[float, Field(ge=0, allow_inf_nan=False)]], OneOrSeveral] = Field(
        default=[0.0],
        min_length=1,
        description="how much the guessed classes of rows without a label count beside the labels; of several, the one "
        "that does best on validation rows is kept",
    )
    self_training_rounds: int = Field(
        1,
        ge=1,
        le=1000,
        description="how often networks are trained: after the first time from guesses of the round before",
    )
    gates: Annotated[list[Gates], OneWord] = Field(
        default=["learned"],
        min_length=1,
        description="whether gates and self maps are learnt, or stay where they start so that layers are the plain "
        "kernel; of both, what does best on validation rows is kept",
    )
    recipe: Recipe | Literal["auto"] = Field(
        "auto",
        description="which network of the preset is for the nodes: that for few labels, that for many, or auto: from "
        f"{MANY} on both, of which what does best on validation rows is kept, and on a big graph the second alone",
    )
    edge_mask_ratio: float = Field(0.0, ge=0, lt=1, description="share of the links that a step hides and learns from")
    negative_ratio: int = Field(1, ge=1, le=1000, description="pairs that are no links for each link that is hidden")
    monitor: str = Field("auto", description="the validation metric that decides which epoch is kept")
    patience: int | None = Field(100, ge=1, le=MOST, description="epochs without a better one before training stops")
    validate_every: int = Field(1, ge=1, le=MOST, description="epochs between validations")
    precision: Literal["float32", "bf16"] = Field("float32", description="of the numbers inside the network")
    checkpoint_seconds: float = Field(30.0, ge=0, description="time between checkpoints; 0 is every step")

    def batch_size_for(self, rows: int) -> int:
        """How many of so many training rows or graphs go into a step.

        >>> auto = TrainingSettings(batch_size="auto")
        >>> [auto.batch_size_for(rows) for rows in (90, 1000, 3360, 10**6)]
        [8, 32, 128, 128]
        """
        if self.batch_size != "auto":
            return self.batch_size
        least, most = BATCHES
        fitting: int = 2 ** ((rows // STEPS) | 1).bit_length() // 2
        return min(max(fitting, least), most)


class DataSettings(_Settings):
    """Which rows are learnt from, and how molecules are described."""

    split: Literal["auto", "ratio", "stratified", "scaffold", "label-rate", "time", "column", "file"] = Field(
        "auto", description="how rows are shared out among training, validation and test"
    )
    split_column: str | None = Field(None, description="the column of a split by time or by column")
    split_index: int | None = Field(
        None, ge=0, description="which of several splits, from 0, where masks of the data have a column for each"
    )
    split_file: str | None = Field(None, description="a splits.csv to take the parts from")
    split_seed: int | None = Field(
        None, ge=0, lt=2**31, description="the seed of the split, if not that of the training"
    )
    fractions: Annotated[tuple[float, float, float], _shares(0)] = Field(
        (0.8, 0.1, 0.1), description="shares of training, validation and test rows"
    )
    link_fractions: Annotated[tuple[float, float, float], _shares(1e-9)] = Field(
        (0.85, 0.05, 0.10), description="the same of links, if predicted"
    )
    label_rate: float = Field(0.05, gt=0, lt=0.5, description="share of training rows of the split label-rate")
    features: Features = Field(
        "rich", description="how molecules, words and citations are described; paper and released are as there"
    )
    descriptors: bool = Field(
        False, description="whether the answer for a molecule also reads rdkit's descriptors of it, beside its graph"
    )
    standardize: Annotated[Standardize, OrNone] = Field(
        "none",
        description="what becomes of a molecule first: its largest fragment, its parent (that without charges), or the "
        "canonical tautomer of the parent",
    )


class Settings(_Settings):
    """Everything that decides what a training does, given its data."""

    preset: str = "strong"
    seed: int = Field(0, ge=0, lt=2**31)
    model: ModelSettings = ModelSettings()
    training: TrainingSettings = TrainingSettings()
    data: DataSettings = DataSettings()
