"""A trained model and its directory: save, load, resume, predict, embed, evaluate."""

from censnet.runs.run import Run, load_run

__all__ = ["Run", "load_run"]
