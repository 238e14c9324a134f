"""Files that commands read and write, checked before the work begins."""

from __future__ import annotations

from pathlib import Path

from softmap.errors import OptionError

__all__ = ["check_targets"]


def check_targets(**targets: Path | None) -> None:
    """Refuse now what could not be written when the work is done."""
    for option, path in targets.items():
        if path is None:
            continue
        if path.is_dir():
            raise OptionError(f"--{option} {path} is a folder; name a file")
        if not path.parent.is_dir():
            raise OptionError(f"--{option} {path}: there is no folder {path.parent}; make it first")
