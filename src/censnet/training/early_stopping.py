"""Early stopping: which epoch is the best on validation, and when to stop waiting for a better one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from censnet.tasks.metrics import higher_is_better


class ValidationScore(NamedTuple):
    """Validation metric of an epoch, and the validation loss, which decides between epochs of equal metric.

    With few validation samples an AUC of 1 is soon reached by chance; the loss still distinguishes the epochs.
    """

    value: float
    loss: float

    def is_better(self, metric: str, old: ValidationScore | None) -> bool:
        """Whether it is an improvement.

        >>> best = ValidationScore(1.0, 0.6)
        >>> ValidationScore(1.0, 0.3).is_better("auc", best), ValidationScore(0.9, 0.3).is_better("auc", best)
        (True, False)
        """
        if old is None or self.value == old.value:
            return old is None or self.loss < old.loss
        return self.value > old.value if higher_is_better(metric) else self.value < old.value


@dataclass(frozen=True)
class EarlyStopping:
    """Stop a training whose validation metric has not improved for some epochs.

    Each member of a batched ensemble is stopped by itself: its best weights no longer change, while the others go on.

    Args:
        monitor: the validation metric.
        patience: epochs without improvement; None never stops.
        validate_every: epochs between validations; patience is looked at after each of them.

    Example:
        >>> stopping = EarlyStopping("auc", patience=4, validate_every=2)
        >>> [stopping.is_over(epoch, best_epoch=2) for epoch in (4, 5, 6, 7)]
        [False, False, True, True]
    """

    monitor: str
    patience: int | None
    validate_every: int = 1

    def improves(self, score: ValidationScore, best: ValidationScore | None) -> bool:
        """Whether a validation score is better than the best so far."""
        return score.is_better(self.monitor, best)

    def is_over(self, epoch: int, best_epoch: int) -> bool:
        """Whether to stop after so many epochs, the best of which was `best_epoch` (-1: there is none yet)."""
        last_validated = epoch - epoch % self.validate_every
        return self.patience is not None and last_validated - max(best_epoch, 0) >= self.patience
