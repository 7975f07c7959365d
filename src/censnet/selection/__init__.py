"""Above the training loop: pseudo-labels, self-training, and the choice among candidates on validation rows."""
