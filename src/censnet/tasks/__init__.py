"""Targets, their labels, losses, metrics and predictions."""
