"""Which rows and links are trained on, chosen on and judged on."""
