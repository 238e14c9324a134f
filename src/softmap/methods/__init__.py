"""The methods (algorithms) for the relaxation; `softmap.solve` runs all of them in one loop."""
