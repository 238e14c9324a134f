"""The benchmark instances that may lie beside the repository. Tests pass without them."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def shared_data() -> Path | None:
    """Return the folder of instances: SOFTMAP_DATA, or ../shared/data, or None."""
    named = os.environ.get("SOFTMAP_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    return folder if folder.is_dir() else None
