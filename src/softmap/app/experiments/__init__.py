"""The experiments of the paper: `softmap reproduce` runs them."""
