"""Solving: options, the main loop, the judge, the stages, results and checkpoints."""
