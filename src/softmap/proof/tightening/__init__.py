"""Tightening: clusters of variables added to the local-polytope relaxation as regions."""
