"""What a user should know of their data before training: counts, cost, and what gives the target away."""
