"""The linear relaxation over the local polytope: dual, points, bounds and theory."""
