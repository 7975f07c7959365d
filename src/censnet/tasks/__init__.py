"""What is learnt and how it is judged: targets, losses, metrics, and the heads that answer."""
