"""Labels beside the relaxation: feasible ones, expansion moves, local search."""
