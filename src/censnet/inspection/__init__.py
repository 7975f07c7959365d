"""Inspection of data before training: structure, cost, and an audit for leakage."""
