"""A room outside the package: a subsolver that proves bounds, and the checker of its records."""
