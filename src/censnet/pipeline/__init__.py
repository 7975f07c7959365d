"""The whole way from a user's data to a run: prepare, resolve settings, train, replicate."""

from censnet.pipeline.inspect import inspect_data
from censnet.pipeline.replicates import Replicates, replicate
from censnet.pipeline.train import resume_run, train

__all__ = ["Replicates", "inspect_data", "replicate", "resume_run", "train"]
