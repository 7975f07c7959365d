"""Hostile and newcomers' input, made by composing small changes of valid input; each case knows what must come of it.

`make hostile` runs every case, `make hostile CASE=NAME` one of them, and the suite a drawn sample (`test_hostile.py`).
"""
