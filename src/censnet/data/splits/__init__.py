"""Splits of rows and of links into training, validation and test parts."""
