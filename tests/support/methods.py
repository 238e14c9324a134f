"""The registered methods by what one of their steps is."""

from softmap.methods.base import METHODS

PASSES = [name for name, method in METHODS.items() if method.sweeping]
UPDATES = [name for name, method in METHODS.items() if not method.sweeping]
