"""The benchmark instances our formats cover, and what their folder's README knows of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import softmap

_MODEL = re.compile(r"\.(uai|wcsp|cfn|h5|dd)(\.xz|\.gz)?$")
_VALUES = (
    r"optimal (-?\d+(?:\.\d+)?)",
    r"best found (-?\d+(?:\.\d+)?)",
    r"reference solution (-?\d+(?:\.\d+)?)",
    r"^\s*(-?\d+(?:\.\d+)?) optimal",
)


@dataclass(frozen=True)
class Known:
    """One instance: where it is, and the README's word on it."""

    path: Path
    name: str
    variables: int
    labels: tuple[int, ...]
    best: float | None
    proved: bool
    tight: bool
    reference: float | None

    def companion(self, suffix: str) -> Path | None:
        """The file of the same name with a suffix of its own, if there is one."""
        path = self.path.with_name(re.sub(r"\.xz$", "", self.path.name) + suffix)
        return path if path.exists() else None

    def read(self) -> softmap.Model:
        """The model, its evidence applied."""
        values = "cost" if self.name.startswith("uai-cost/") else None
        return softmap.read(self.path, values=values, evidence=self.companion(".evid"))


# Documented as optimal, but a labelling costs less by the file's own tables (every one of them a
# conditional distribution, so they are read the right way round): 3.086727 against 3.157695.
REFUTED = {"cfn/alarm.cfn.gz"}


def known(root: Path) -> list[Known]:
    """All instances, in the order of their names."""
    rows = _rows(root)
    found = sorted(path for path in root.glob("*/*") if _MODEL.search(path.name))
    return [_known(path, rows[f"{path.parent.name}/{path.name}"]) for path in found]


def _rows(root: Path) -> dict[str, list[str]]:
    """Cells of the README's tables by folder and file."""
    rows, folder = {}, ""
    for line in (root / "README.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("### ") and (root / line[4:].strip()).is_dir():
            folder = line[4:].strip()
        elif match := re.match(r"\| ([^ |<]+)", line):
            rows[f"{folder}/{match[1]}"] = [cell.strip() for cell in line.split("|")]
    return rows


def _known(path: Path, cells: list[str]) -> Known:
    documented, checked = cells[8], cells[9]
    name = f"{path.parent.name}/{path.name}"
    values = [float(v) for p in _VALUES for c in (documented, checked) for v in re.findall(p, c)]
    reference = re.search(_VALUES[2], documented)
    variables = re.match(r"\d+", cells[3])
    return Known(
        path=path,
        name=name,
        variables=int(variables[0]) if variables else 0,
        labels=tuple(int(d) for d in re.findall(r"\d+", cells[5])),
        best=min(values, default=None),
        proved=name not in REFUTED
        and bool(re.search(_VALUES[0], checked) or re.search(_VALUES[3], documented)),
        tight="root bound tight" in checked,
        reference=float(reference[1]) if reference else None,
    )
