"""A GPU: its compiled loops, its arrays, and a thread for calls that may outlast a deadline."""

from softmap.methods.cuda.cupy_device import (
    chosen_device,
    cupy_or_none,
    find_arrays,
    find_device,
    require_cupy,
)
from softmap.methods.cuda.waiting import Aside

__all__ = ["Aside", "chosen_device", "cupy_or_none", "find_arrays", "find_device", "require_cupy"]
