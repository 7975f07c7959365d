"""The run directory: written, opened, and asked for predictions and embeddings."""
