"""Set up before any test module is imported: the kernel cache and the hypothesis profiles."""

import os

from hypothesis import HealthCheck, settings

from kernel_cache import kernel_cache

os.environ.setdefault("NUMBA_CACHE_DIR", str(kernel_cache()))
os.environ.setdefault("MPLBACKEND", "Agg")

# The first example of a test may compile a kernel, so that no deadline makes sense.
_COMMON = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("default", max_examples=25, derandomize=True, **_COMMON)
settings.register_profile("thorough", max_examples=1000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
