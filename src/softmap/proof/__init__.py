"""Bounds better than the LP relaxation: searches, and relaxations tightened by clusters."""
