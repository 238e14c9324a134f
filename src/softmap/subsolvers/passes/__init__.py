"""The relaxation, labels decoded from it, and LP solvers for small ones."""
