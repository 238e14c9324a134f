"""The course of a run: the loop, its records, checkpoints and proof files."""
