"""The linear relaxation over the local polytope: dual, points and bounds."""
