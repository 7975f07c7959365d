"""What CensNet is compared with: the other methods of the paper's tables."""
