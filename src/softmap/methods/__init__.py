"""Methods by name; `softmap.solve` drives them all through one loop."""
