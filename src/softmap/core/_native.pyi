"""The compiled core of softmap, for one instruction set."""

def level() -> str:
    """The instruction set this module is compiled for."""

def lanes() -> int:
    """Doubles in one vector register."""

def cpu_level() -> str:
    """The highest instruction set that this machine runs."""
