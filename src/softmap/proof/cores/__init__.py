"""Core-guided search for models of hard constraints and costs over labels with few values."""
