"""The nouns of a run: problem, best values with their evidence, budget, subsolver, result."""
