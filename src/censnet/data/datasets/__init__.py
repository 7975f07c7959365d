"""The built-in data sets: what they are, where their bytes come from, and how they are read."""
