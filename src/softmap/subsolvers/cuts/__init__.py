"""Submodular models of two labels, solved by one minimum cut."""
