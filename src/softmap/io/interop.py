"""An alias: `import softmap.io.interop` imports `softmap.interop`."""

import sys
from importlib import import_module

sys.modules[__name__] = import_module("softmap.interop")
sys.modules[f"{__name__}.dimod"] = import_module("softmap.interop.dimod")
