"""Exact search: branch and bound over tables of integer costs."""
