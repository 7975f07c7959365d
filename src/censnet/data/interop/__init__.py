"""Other libraries' graphs, there and back."""
