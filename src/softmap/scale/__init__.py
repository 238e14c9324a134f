"""Many models in parallel, and single models too large for one machine."""
