"""Applications: the command line, functions for images, and the experiments of the paper."""
