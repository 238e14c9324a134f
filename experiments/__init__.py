"""The experiments of the paper: `softmap reproduce` runs them, in a clone of the sources."""
