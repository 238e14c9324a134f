"""Exact search (branch and bound) for models with an integrality gap."""
