"""Core-guided search over clauses and sums."""
