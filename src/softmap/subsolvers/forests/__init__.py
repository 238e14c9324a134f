"""Models whose graph has no cycle, solved by dynamic programming without a run."""
