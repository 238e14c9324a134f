"""Exact search for what relaxations leave open."""
