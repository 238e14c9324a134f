"""Semidefinite bounds of dense models, of two labels and of many."""
