"""Speed and memory against the peers, in the same run. `make bench`, or `python -m benchmarks.gpu` on a GPU."""
