"""Methods that pass over the whole graph: chains, stars, and what is annealed over them."""
