"""Predictions on graphs past memory and past one machine: a trained run as relational algebra on tables."""

from censnet.engines.plan import Written
from censnet.engines.predict import predict_files

__all__ = ["Written", "predict_files"]
