"""Settings of the training: optimizer, schedule, batches, early stopping, self-training and selection."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from censnet.errors import quote
from censnet.settings.section import Count, OneOrSeveral, OneOrSeveralWords, OrNone, Rate, Section
from censnet.tasks.losses import RegressionLoss
from censnet.text import read_seconds

Gates = Literal["learned", "frozen"]
Recipe = Literal["low_label", "high_label"]
BATCHES = 8, 256  # smallest and largest batch of batch_size "auto"
STEPS = 25  # of an epoch, that batch_size "auto" aims at
MANY = 100  # training labels of nodes from which on recipe "auto" includes high_label


class TrainingSettings(Section):
    """The training: optimizer, schedule, batches, early stopping, self-training and selection."""

    epochs: Count = Field(300, description="maximum number of epochs")
    learning_rate: float = Field(0.01, gt=0, description="learning rate, the highest where a schedule changes it")
    optimizer: Literal["adam", "adamw"] = Field("adam", description="optimizer")
    weight_decay: float = Field(5e-4, ge=0, description="weight decay of all parameters")
    weight_decay_by_name: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict,
        description="weight decay of parameters whose name begins or ends so, such as encoder; of several, the last",
    )
    schedule: Literal["constant", "cosine", "warmup-cosine"] = Field("constant", description="learning-rate schedule")
    ema_decay: Rate = Field(
        0.0,
        description="decay of the exponential moving average (EMA) of the weights (0.98: about 50 steps; 0: none); "
        "validation and the saved model use the average",
    )
    warmup: Rate = Field(0.0, description="share of the steps in which the learning rate rises linearly")
    max_grad_norm: float | None = Field(None, gt=0, description="gradient clipping: maximum norm; none does not clip")
    regression_loss: RegressionLoss = Field(
        "squared",
        description="loss of numbers: squared errors, absolute ones, by which outliers count less, or huber, which is "
        "squared up to one standard deviation",
    )
    lp_penalty: float = Field(0.0, ge=0, description="weight of the l^p penalty of the paper's regression loss")
    lp_power: float = Field(2.0, ge=1, description="p of the l^p penalty")
    sampling: Literal["auto", "full", "neighbors", "proportional", "history"] = Field(
        "auto",
        description="batches of one large graph: full, sampled neighbors, nodes in proportion to the split (the "
        "paper's Algorithm 2), or parts of a history, for causal layers; auto decides by memory, edges and processes",
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
    batch_size: Count | Literal["auto"] = Field(
        64,
        description=f"graphs, or labeled nodes or edges, in a batch (of each process); auto is the power of 2 from "
        f"{BATCHES[0]} to {BATCHES[1]} that gives an epoch {STEPS} steps or more, if possible",
    )
    fanout: Count = Field(15, description="neighbor sampling: edges sampled for each node, halved at each further hop")
    max_steps_per_epoch: Count | None = Field(
        None,
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
    stale_label_ratio: Rate = Field(
        0.0,
        description="with causal layers, the share of the steps that show no label after a moment and predict the rows "
        "right after it, as the score with fixed labels does; other steps show each row all labels before it",
    )
    edge_mask_ratio: Rate = Field(0.0, description="share of the links that each step masks and predicts")
    negative_ratio: int = Field(
        1, ge=1, le=1000, description="negative sampling: pairs without a link for each masked link"
    )
    monitor: str = Field(
        "auto",
        description="validation metric of early stopping; auto is the usual one of the target, mae for numbers with "
        "absolute errors as loss",
    )
    patience: Count | None = Field(
        100,
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
    validate_every: Count = Field(1, description="epochs between validations")
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
