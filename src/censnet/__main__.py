"""`python -m censnet`: the command line."""

from censnet.cli.app import app

app()
