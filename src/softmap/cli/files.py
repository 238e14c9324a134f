"""Files that commands read and write, checked before the work begins."""

from __future__ import annotations

from pathlib import Path

from softmap.errors import OptionError

__all__ = ["STANDARD", "check_targets"]


STANDARD = Path("-")  # standard input or output


def check_targets(**targets: Path | None) -> None:
    """Refuse now what could not be written when the work is done; "-" is standard output."""
    for option, path in targets.items():
        if path is None or path == STANDARD:
            continue
        name = "" if option == "target" else f"--{option} "
        if path.is_dir():
            raise OptionError(f"{name}{path} is a folder; name a file")
        if not path.parent.is_dir():
            raise OptionError(f"{name}{path}: there is no folder {path.parent}; make it first")
