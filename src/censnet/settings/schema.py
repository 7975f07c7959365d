"""Settings of model, training and data: their schema, defaults and descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from censnet.data.tables.schema import Descriptors, Features, Hydrogens, Standardize
from censnet.errors import quote
from censnet.nn.encoder import ACTIVATIONS
from censnet.nn.heads import Pool
from censnet.nn.kernels import KERNELS
from censnet.nn.layers import Gate, GateInit, SelfWeight, Variant, letters
from censnet.nn.norms import Norm
from censnet.ops.normalization import Normalization
from censnet.tasks.losses import RegressionLoss
from censnet.text import read_seconds

PRESETS = ("strong", "paper", "released")
MOLECULE = "molecule"  # section of a preset for atoms and bonds of molecules
ORIENTED = "oriented"  # section of a preset where the sign of a target or of a column follows the order of the ends
Gates = Literal["learned", "frozen"]
Recipe = Literal["low_label", "high_label"]
OF_LINKS = {
    "model": ("decoder", "latent", "diffusion_steps", "positive_weight"),
    "training": ("edge_mask_ratio", "negative_ratio"),
}
DROPOUT = 0.1  # of dropout "auto"
BATCHES = 8, 256  # smallest and largest batch of batch_size "auto"
STEPS = 25  # of an epoch, that batch_size "auto" aims at
DIFFUSION_STEPS = 4  # of diffusion_steps "auto"
WIDEST = 2**16  # channels of a layer
DEEPEST = 1000  # layers
LAYER_PATTERN = f"^([{''.join(letters())}]+|[{''.join(letters(causal=True))}]+)$"
MOST = 10**9  # of any count
MANY = 100  # training labels of nodes from which on recipe "auto" includes high_label
OneOrSeveral = BeforeValidator(lambda value: [value] if isinstance(value, int | float) else value)
OneOrSeveralWords = BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
OrNone = BeforeValidator(lambda value: "none" if value is None else value)  # here "none" is a choice like the others


def _shares(least: float) -> AfterValidator:
    """Check shares of train, validation and test: their sum is 1, the first above 0, the others at least `least`."""

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
        """Refuse `true` where a number is expected, rather than take it for 1."""
        for name, value in values.items() if isinstance(values, dict) else ():
            field = cls.model_fields.get(name)
            kinds = () if field is None else (field.annotation, *get_args(field.annotation))
            if isinstance(value, bool) and kinds and bool not in kinds:
                raise ValueError(f"{name} is {str(value).lower()}, expected a number or a word")
        return values


class ModelSettings(_Settings):
    """The model: encoder, heads and link decoder. Names are those of `CensNet` and the heads."""

    layers: str = Field(
        "NEN",
        pattern=LAYER_PATTERN,
        max_length=DEEPEST,
        description="node (N) and edge (E) layers, in order; or causal ones (C), as many as there are letters",
    )
    hidden: int = Field(32, ge=1, le=WIDEST, description="hidden channels of nodes and edges")
    pre_layers: int = Field(
        0,
        ge=0,
        le=DEEPEST,
        description="layers that map the features of each node to hidden channels before the first graph layer",
    )
    edge_pre_layer: bool = Field(
        False, description="whether a linear layer first maps each edge and the sum of its two nodes to hidden channels"
    )
    dropout: Annotated[float, Field(ge=0, lt=1)] | Literal["auto"] = Field(
        0.5,
        description=f"dropout rate after each layer; auto is {DROPOUT} for classification and 0 where all targets are"
        " regression",
    )
    feature_dropout: float = Field(0.0, ge=0, lt=1, description="dropout rate of sparse node features, such as words")
    norm: Norm | Literal["auto"] | None = Field(
        None,
        description="normalization after each layer, or none; auto is batch, or layer where neighborhoods are sampled, "
        "whose statistics are not those of the whole graph",
    )
    residual: bool | Literal["rezero"] = Field(
        False,
        description="residual connections; rezero scales each layer by a learned gain that starts at 0 (ReZero), so "
        "that a deep model starts as a shallow one",
    )
    potentials: int = Field(
        0,
        ge=0,
        le=WIDEST,
        description="potentials of nodes that oriented layers solve for, as in a network of conductors, by which an "
        "edge depends on its whole graph; 0: none",
    )
    log_features: bool = Field(
        False,
        description="whether the columns of edges of oriented data are also features on a scale of decades, as "
        "resistances are",
    )
    activation: Annotated[str, OrNone] = Field(
        "relu", description="activation function after each layer: " + ", ".join(ACTIVATIONS)
    )
    variant: Variant = Field(
        "paper", description="layers as printed in the paper, or as in the code its authors released"
    )
    bias: bool = Field(True, description="whether layers have a bias")
    self_weight: SelfWeight | None = Field(
        None,
        description="weight of the self-loop: incident is the sum of the gates of the incident edges (as printed), "
        "one is 1, learned is a root weight matrix, one_plus_learned is both; none is the variant's",
    )
    heads: Annotated[int, Field(ge=1, le=WIDEST)] | Literal["per_channel"] = Field(
        1,
        description="gates of each node or edge, each for an equal share of the channels; per_channel is one for "
        "each channel",
    )
    gate: Gate = Field(
        "linear", description="gate function: linear (as printed) or bounded, 2 sigmoid, which starts at 1"
    )
    gate_init: GateInit = Field("signed", description="initial gate weights: of either sign, or positive")
    normalization: Normalization | None = Field(
        None, description="degree normalization of the propagation; none is the variant's"
    )
    directed: bool | Literal["auto"] = Field(
        False,
        description="whether layers, edge heads and link decoders distinguish the start of an edge from its end; auto "
        "is as the data",
    )
    edge_content: bool = Field(
        False, description="whether node layers also read the mean of the features of the edges of a node"
    )
    pair_means: bool = Field(
        False,
        description="whether directed edge layers also read the means over parallel and over reciprocal edges",
    )
    structural_features: bool = Field(
        False,
        description="whether nodes and edges also have counts as features: edges and distinct neighbors of a node, "
        "parallel and reciprocal edges of an edge",
    )
    ports: bool = Field(
        False,
        description="whether an edge also has the number of parallel edges before it in the table as a feature; "
        "predictions then depend on the order of rows",
    )
    triangles: bool | Literal["auto"] = Field(
        False,
        description="whether edges also have the number of their triangles as features, and what is known of the "
        "labels in these; auto is true on one graph that is trained as a whole and has few enough",
    )
    windows: bool | Literal["auto"] = Field(
        "auto",
        description="whether edges that have times also have as features the gaps to the events around them, and the "
        "events and known labels in windows of time; auto is true where edges have times and structural_features is on",
    )
    causal: bool | Literal["auto"] = Field(
        False,
        description="whether an edge is embedded from the edges and known labels before it alone (layers C); auto is "
        "true where edges of one graph are predicted and split by their times",
    )
    decay_rates: int = Field(
        0, ge=0, le=WIDEST, description="learned rates at which half of the sums of causal layers decay; 0: none do"
    )
    position_steps: Annotated[int, Field(ge=0, le=100)] | Literal["auto"] = Field(
        0,
        description=f"steps of the diffusion embedding that nodes have as positional encoding; auto is "
        f"{DIFFUSION_STEPS} where nodes have no columns and no labels are inputs, else 0 (none)",
    )
    known_labels: bool | Literal["auto"] = Field(
        False,
        description="whether the known labels of other rows are inputs, which validation decides whether to show; auto "
        "is true where that is possible: for nodes and edges of one graph",
    )
    label_counts: bool | Literal["auto"] = Field(
        False,
        description="whether nodes and edges also have counts of the known labels around them as features, by "
        "direction; auto is what does better on validation where a class is rare or edges are rated",
    )
    label_factors: bool | Literal["auto"] = Field(
        False,
        description="whether edges also have as features what a matrix factorization of their known labels predicts; "
        "auto is what does better on validation where nodes have many edges with numbers, such as ratings",
    )
    ego_marks: bool = Field(
        False,
        description="whether each node is predicted in a graph of its own, its neighborhood, in which it is marked; "
        "layers can then tell whether a walk comes back to it, as on a cycle",
    )
    ego_hops: Annotated[int, Field(ge=1, le=DEEPEST)] | Literal["auto"] = Field(
        "auto",
        description="hops of the neighborhoods of ego_marks; auto is the receptive field of the layers",
    )
    kernel: str = Field("hop", description="graph kernel of one layer: " + ", ".join(KERNELS))
    kernel_options: dict[str, int | float | list[int]] = Field(
        default_factory=dict, description='options of the kernel, such as {"steps": 10}'
    )
    last_layer_is_head: bool = Field(
        False, description="whether the last graph layer predicts, without a head above it"
    )
    clip_to_label_range: bool = Field(
        False, description="whether regression predictions are clipped to the range of the training labels"
    )
    head: list[Annotated[int, Field(ge=1, le=WIDEST)]] = Field(
        default_factory=list, max_length=DEEPEST, description="hidden widths of the MLP head"
    )
    edge_head_reads_nodes: bool = Field(
        False, description="whether the head of edges reads the embeddings of the two end nodes beside that of the edge"
    )
    pool: list[Pool] = Field(
        default=["mean"],
        min_length=1,
        description="graph pooling, concatenated; a sum is divided by the size of an average training graph",
    )
    pool_norm: Norm | None = Field(None, description="normalization of pooled means; sums keep the size of a graph")
    pool_from: Literal["nodes", "edges", "both"] = Field("nodes", description="embeddings that are pooled")
    decoder: Literal["inner_product", "pairwise", "cosine"] = Field(
        "inner_product",
        description="link decoder: inner product of a variational auto-encoder (as in the paper), pairwise with the "
        "embedding of a virtual edge, or cosine",
    )
    latent: int = Field(32, ge=1, le=WIDEST, description="channels of the node embeddings that links are decoded from")
    diffusion_steps: Annotated[int, Field(ge=0, le=100)] | Literal["auto"] = Field(
        "auto",
        description=f"steps of the diffusion embedding that link scores also use; auto is {DIFFUSION_STEPS}, or 0 "
        "(none) where nodes have sparse features, such as words; the inner product uses none",
    )
    positive_weight: Annotated[float, Field(gt=0)] | Literal["balanced"] = Field(
        1.0, description="weight of links against other pairs in the loss; balanced weighs both alike"
    )

    @model_validator(mode="after")
    def _known_names(self) -> ModelSettings:
        for name, value, known in (("activation", self.activation, ACTIVATIONS), ("kernel", self.kernel, KERNELS)):
            if value not in known:
                raise ValueError(f"{name} is {quote(value)}, expected one of {', '.join(known)}")
        if self.hidden % self.num_heads:
            raise ValueError(
                f"heads is {self.heads}, expected per_channel, or a divisor of hidden, which is {self.hidden}"
            )
        return self

    @property
    def num_heads(self) -> int:
        """Number of gates of each node or edge."""
        return self.hidden if self.heads == "per_channel" else self.heads

    def dropout_for(self, regression: bool) -> float:
        """The dropout rate, for regression alone or with classification.

        Dropout changes the variance of normalized activations in training alone. This leaves the sign of a logit, but
        biases a regression.
        """
        if self.dropout == "auto":
            return 0.0 if regression else DROPOUT
        return self.dropout


class TrainingSettings(_Settings):
    """The training: optimizer, schedule, batches, early stopping, self-training and selection."""

    epochs: int = Field(300, ge=1, le=MOST, description="maximum number of epochs")
    learning_rate: float = Field(0.01, gt=0, description="learning rate, the highest where a schedule changes it")
    optimizer: Literal["adam", "adamw"] = Field("adam", description="optimizer")
    weight_decay: float = Field(5e-4, ge=0, description="weight decay of all parameters")
    weight_decay_by_name: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict,
        description="weight decay of parameters whose name begins or ends so, such as encoder; of several, the last",
    )
    schedule: Literal["constant", "cosine", "warmup-cosine"] = Field("constant", description="learning-rate schedule")
    ema_decay: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="decay of the exponential moving average (EMA) of the weights (0.98: about 50 steps; 0: none); "
        "validation and the saved model use the average",
    )
    warmup: float = Field(0.0, ge=0, lt=1, description="share of the steps in which the learning rate rises linearly")
    max_grad_norm: float | None = Field(None, gt=0, description="gradient clipping: maximum norm; none does not clip")
    regression_loss: RegressionLoss = Field(
        "squared",
        description="loss of numbers: squared errors, absolute ones, by which outliers count less, or huber, which is "
        "squared up to one standard deviation",
    )
    lp_penalty: float = Field(0.0, ge=0, description="weight of the l^p penalty of the paper's regression loss")
    lp_power: float = Field(2.0, ge=1, description="p of the l^p penalty")
    sampling: Literal["auto", "full", "neighbors", "proportional"] = Field(
        "auto",
        description="batches of one large graph: the full graph, sampled neighborhoods, or nodes in proportion "
        "to the split (the paper's Algorithm 2); auto is neighbors if the graph does not fit into memory, or if "
        "several processes share it",
    )
    recompute: bool | Literal["auto"] = Field(
        "auto",
        description="whether the backward pass computes each layer again, with the same bits: a fraction of the memory "
        "for a third more time; auto is true where a step on a full graph would take most of the memory",
    )
    step_graphs: bool = Field(
        False,
        description="whether steps on a GPU whose shapes repeat are recorded once as CUDA graphs, which take less time "
        "to launch; batches of graphs are padded for it",
    )
    batch_size: Annotated[int, Field(ge=1, le=MOST)] | Literal["auto"] = Field(
        64,
        description=f"graphs, or labeled nodes or edges, in a batch (of each process); auto is the power of 2 from "
        f"{BATCHES[0]} to {BATCHES[1]} that gives an epoch {STEPS} steps or more, if possible",
    )
    fanout: int = Field(
        15, ge=1, le=MOST, description="neighbor sampling: edges sampled for each node, halved at each further hop"
    )
    max_steps_per_epoch: int | None = Field(
        None,
        ge=1,
        le=MOST,
        description="maximum number of steps of an epoch with sampled subgraphs; none takes every labeled sample once",
    )
    imbalance: Annotated[Literal["none", "weights", "sampling"], OrNone] = Field(
        "none", description="class imbalance: class weights in the loss, or balanced sampling"
    )
    pseudo_label_weights: Annotated[list[Annotated[float, Field(ge=0, allow_inf_nan=False)]], OneOrSeveral] = Field(
        default=[0.0],
        min_length=1,
        description="weight of the pseudo-labels of unlabeled nodes in the loss (0: labels alone); of several, "
        "validation selects one",
    )
    self_training_rounds: int = Field(
        1,
        ge=1,
        le=1000,
        description="rounds of self-training; from the second on, models of the previous round predict the pseudo-"
        "labels",
    )
    gates: Annotated[list[Gates], OneOrSeveralWords] = Field(
        default=["learned"],
        min_length=1,
        description="whether gates and root weights are learned, or frozen at their initial values, where bounded "
        "gates are 1; of both, validation selects one",
    )
    recipe: Recipe | Literal["auto"] = Field(
        "auto",
        description=f"node recipe of the preset: low_label, high_label, or auto (from {MANY} training labels on, "
        "train both and select the better one on validation; on a large graph, or where neighbors are unlike, "
        "high_label alone)",
    )
    hidden_label_ratio: float = Field(
        0.4,
        gt=0,
        lt=1,
        description="where known labels are inputs, the share of the training labels that a step hides and predicts",
    )
    stale_label_ratio: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="with causal layers, the share of the steps that show no label after a moment and predict the rows "
        "right after it, as the score with fixed labels does; other steps show each row all labels before it",
    )
    edge_mask_ratio: float = Field(0.0, ge=0, lt=1, description="share of the links that each step masks and predicts")
    negative_ratio: int = Field(
        1, ge=1, le=1000, description="negative sampling: pairs without a link for each masked link"
    )
    monitor: str = Field(
        "auto",
        description="validation metric of early stopping; auto is the usual one of the target, mae for numbers with "
        "absolute errors as loss",
    )
    patience: int | None = Field(
        100,
        ge=1,
        le=MOST,
        description="early stopping: epochs without improvement of the monitor; none trains all epochs",
    )
    cost: dict[Literal["fp", "fn"], Annotated[float, Field(gt=0)]] = Field(
        default_factory=dict,
        description="of two classes, the cost of a false positive (fp) and of a false negative (fn): the threshold of "
        "the least cost on validation samples is stored for predictions",
    )
    recall: float | None = Field(
        None,
        gt=0,
        le=1,
        description="of two classes, the share of positive samples to find: the highest threshold that does on "
        "validation samples is stored for predictions",
    )
    validate_every: int = Field(1, ge=1, le=MOST, description="epochs between validations")
    precision: Literal["float32", "bf16"] = Field("float32", description="floating-point precision of the forward pass")
    time_budget: str | float | None = Field(
        None,
        description="wall time from the start of the training until its run is saved, such as 90s, 10m or 2h: the "
        "epochs are as many as fit into it, and their learning rates follow; none takes all epochs",
    )
    checkpoint_seconds: float = Field(
        30.0, ge=0, description="seconds between checkpoints; 0 writes one after every step"
    )

    @field_validator("time_budget", mode="before")
    @classmethod
    def _is_duration(cls, value: object) -> object:
        if value is not None and (not isinstance(value, str | int | float) or read_seconds(value) is None):
            raise ValueError(f"is {quote(value)}, expected none, or a time above 0 such as 90s, 10m or 2h (s, m, h, d)")
        return value

    @property
    def budget_seconds(self) -> float | None:
        """The time budget in seconds; None is none."""
        return None if self.time_budget is None else read_seconds(self.time_budget)

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        if self.cost and (len(self.cost) < 2 or self.recall is not None):
            both = "cost and recall, expected one" if self.recall is not None else "cost of one, expected fp and fn"
            raise ValueError(f"there is {both}")
        return self

    def batch_size_for(self, samples: int) -> int:
        """Batch size for so many training samples.

        >>> auto = TrainingSettings(batch_size="auto")
        >>> [auto.batch_size_for(samples) for samples in (90, 1000, 3360, 10**6)]
        [8, 32, 128, 256]
        """
        if self.batch_size != "auto":
            return self.batch_size
        least, most = BATCHES
        fitting: int = 2 ** ((samples // STEPS) | 1).bit_length() // 2
        return min(max(fitting, least), most)


class DataSettings(_Settings):
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
    fractions: Annotated[tuple[float, float, float], _shares(0)] = Field(
        (0.8, 0.1, 0.1), description="shares of train, validation and test samples"
    )
    link_fractions: Annotated[tuple[float, float, float], _shares(1e-9)] = Field(
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


class Settings(_Settings):
    """All settings of a training."""

    preset: str = "strong"
    seed: int = Field(0, ge=0, lt=2**31)
    model: ModelSettings = ModelSettings()
    training: TrainingSettings = TrainingSettings()
    data: DataSettings = DataSettings()

    def with_model(self, changes: Mapping[str, object]) -> Settings:
        """The same with other values of some settings of the model, which are not checked again."""
        return self.model_copy(update={"model": self.model.model_copy(update=changes)})

    def with_training(self, changes: Mapping[str, object]) -> Settings:
        """The same with other values of some settings of the training, which are not checked again."""
        return self.model_copy(update={"training": self.training.model_copy(update=changes)})
