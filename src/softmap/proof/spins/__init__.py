"""The semidefinite bound of models of two labels, and branch and bound with it."""
