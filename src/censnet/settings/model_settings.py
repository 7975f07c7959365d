"""Settings of the model: encoder, heads and link decoder."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from censnet.errors import quote
from censnet.nn.encoder import ACTIVATIONS
from censnet.nn.kernels import KERNELS
from censnet.nn.layers import Gate, GateInit, SelfWeight, Variant, letters
from censnet.nn.norms import Norm
from censnet.nn.pooling import Pool
from censnet.ops.normalization import Normalization
from censnet.settings.section import WIDEST, OrNone, Rate, Section, Width

DROPOUT = 0.1  # of dropout "auto"
DIFFUSION_STEPS = 4  # of diffusion_steps "auto"
DEEPEST = 1000  # layers
LAYER_PATTERN = f"^([{''.join(letters())}]+|[{''.join(letters(causal=True))}]+)$"


class ModelSettings(Section):
    """The model: encoder, heads and link decoder. Names are those of `CensNet` and the heads."""

    layers: str = Field(
        "NEN",
        pattern=LAYER_PATTERN,
        max_length=DEEPEST,
        description="node (N) and edge (E) layers, in order; or causal ones (C), as many as there are letters",
    )
    hidden: Width = Field(32, description="hidden channels of nodes and edges")
    pre_layers: int = Field(
        0,
        ge=0,
        le=DEEPEST,
        description="layers that map the features of each node to hidden channels before the first graph layer",
    )
    edge_pre_layer: bool = Field(
        False, description="whether a linear layer first maps each edge and the sum of its two nodes to hidden channels"
    )
    dropout: Rate | Literal["auto"] = Field(
        0.5,
        description=f"dropout rate after each layer; auto is {DROPOUT} for classification and 0 where all targets are"
        " regression",
    )
    feature_dropout: Rate = Field(0.0, description="dropout rate of sparse node features, such as words")
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
    heads: Width | Literal["per_channel"] = Field(
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
    head: list[Width] = Field(default_factory=list, max_length=DEEPEST, description="hidden widths of the MLP head")
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
    latent: Width = Field(32, description="channels of the node embeddings that links are decoded from")
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
