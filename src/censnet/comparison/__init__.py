"""Comparison on the same split: boosted trees on features of the graph, forests, and ablations of our own model."""
