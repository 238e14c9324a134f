"""Where compiled kernels are cached: a folder named after the kernel sources.

numba notices an edited file, but not an edited file that the cached function merely uses;
a folder per state of the sources cannot be stale. Standard library only: make asks, too.
"""

import hashlib
import platform
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def kernel_cache() -> Path:
    """Return the cache folder of the kernel sources as they are now."""
    digest = hashlib.sha256(platform.python_version().encode())
    for source in sorted((ROOT / "src" / "softmap" / "kernels").rglob("*.py")):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    return ROOT / ".cache" / "numba" / digest.hexdigest()[:16]


if __name__ == "__main__":
    print(kernel_cache())
