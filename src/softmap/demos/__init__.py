"""Models with a story: synthetic, or made from one's own pictures."""

from collections.abc import Callable
from importlib import import_module

from softmap.demos.base import Demo, DemoOptions
from softmap.errors import OptionError

__all__ = ["NAMES", "Demo", "DemoOptions", "build"]

NAMES = ("potts", "stereo", "denoise", "segment", "matching")


def build(name: str, options: DemoOptions | None = None) -> Demo:
    """Build the demo of this name."""
    if name not in NAMES:
        raise OptionError(f"there is no demo {name!r}; there are {', '.join(NAMES)}")
    options = options or DemoOptions()
    if options.labels is not None and options.labels < 2:
        raise OptionError(f"--labels {options.labels}: a demo needs at least 2 labels")
    if options.size is not None and options.size < 4:
        raise OptionError(f"--size {options.size}: a demo needs a size of at least 4")
    make: Callable[[DemoOptions], Demo] = import_module(f"softmap.demos.{name}").build
    return make(options)
