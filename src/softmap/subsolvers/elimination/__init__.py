"""Models of small width, solved by dynamic programming."""
