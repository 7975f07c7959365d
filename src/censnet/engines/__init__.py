"""Predictions on graphs past memory and past one machine: a trained run as relational algebra on tables."""
