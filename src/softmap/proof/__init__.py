"""Bounds better than the LP relaxation: exact and core-guided search, and relaxations tightened by clusters."""
