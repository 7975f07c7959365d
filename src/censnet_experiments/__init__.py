"""The paper's experiments: what was published, how each number is made again, and the pages computed from records."""
