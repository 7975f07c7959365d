"""A run on one page: scores, curves, errors and a map of embeddings, as one HTML file without a network."""

from censnet.report.page import report_page

__all__ = ["report_page"]
