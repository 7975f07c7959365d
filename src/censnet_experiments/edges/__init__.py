"""Graphs whose edges carry data: simulated payments, patterns, grids and pipes, trust, and bonds."""
