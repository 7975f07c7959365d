"""Explanations of single predictions: what changes without an edge, a node or a column, and integrated gradients."""
