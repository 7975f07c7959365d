"""The loop, the run directory, and what a user calls: train, load a run, predict, embed, evaluate."""

from censnet.training.changes import make_settings
from censnet.training.config import Settings
from censnet.training.replicates import Replicates, replicate
from censnet.training.run.run import Run, load_run
from censnet.training.train import resume_run, train

__all__ = ["Replicates", "Run", "Settings", "load_run", "make_settings", "replicate", "resume_run", "train"]
