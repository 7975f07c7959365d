"""Above the training loop: pseudo-labels, self-training, and the selection among candidates on validation."""
