"""Random models that try to break a promise; see run.py."""
