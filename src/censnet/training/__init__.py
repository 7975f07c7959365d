"""One training loop for every kind of data: batches, the objective, the optimizer, EMA, early stopping, checkpoints."""
