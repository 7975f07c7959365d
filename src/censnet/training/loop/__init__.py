"""One loop for one big graph, its sampled parts, and batches of small graphs."""
