"""Bounds and labels of problems over permutations."""
