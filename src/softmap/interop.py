"""An alias: `import softmap.interop` imports `softmap.io.interop`."""

import sys

from softmap.io import interop
from softmap.io.interop import *  # noqa: F403 - so that type checkers know the names

sys.modules[__name__] = interop
sys.modules[f"{__name__}.dimod"] = interop.dimod
