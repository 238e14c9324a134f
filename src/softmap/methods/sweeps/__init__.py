"""Sweep methods: passes over chains or stars of the whole graph, annealed or at fixed η."""
