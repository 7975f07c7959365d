"""Hostile and newcomers' input, made by composing small changes of valid input; each case knows what must come of it.

`make hostile` runs every case, and `python -m hostile --case NAME` (with tests/ on the path) one of them. The suite runs
a drawn sample, `tests/test_hostile.py`.
"""
