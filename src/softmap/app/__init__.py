"""Applications: the command line, and functions for images."""
