"""Benchmarks: softmap beside its peers, every gap certified by the same judge."""
