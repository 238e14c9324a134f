"""The driver: options, the loop over an algorithm, its judge, results and checkpoints."""
