"""Comparison on the same split: boosted trees on features of the graph, forests, and ablations of our own model."""

from censnet.comparison.run import Comparison, compare, load_comparison

__all__ = ["Comparison", "compare", "load_comparison"]
