"""Compile the kernels once, before several test processes would each do it for themselves.

One compilation for all also means one machine code for all: a kernel inlined in another order may
differ in its last bit, and some tests compare runs of two processes to the bit.
"""

from __future__ import annotations

import os
import sys

from kernel_cache import kernel_cache

os.environ.setdefault("NUMBA_CACHE_DIR", str(kernel_cache()))

from softmap.solving.run import warm_up

METHODS = ("anneal", "anneal-star", "smp", "accel-smp")

for method in sys.argv[1:] or METHODS:
    warm_up(method, "float64")
