"""Many models at once, and one model that is too large for a machine."""
