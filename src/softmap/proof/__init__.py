"""Bounds better than the LP relaxation: exact search, and relaxations tightened by clusters."""
