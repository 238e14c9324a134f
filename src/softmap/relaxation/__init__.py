"""The linear relaxation over the local polytope: its dual, its points, bounds and theory."""
