"""The command line: commands, progress, and everything that is printed."""
