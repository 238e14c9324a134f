"""Tables of the scoreboard, from its rows."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.summary import markdown

Row = dict[str, Any]
SAME = 1e-6  # relative difference under which two energies or bounds count as equal


def families(rows: list[Row]) -> list[str]:
    """The families that have rows, in the order of their names."""
    return sorted({row["family"] for row in rows}, key=str.lower)


def solvers(rows: list[Row]) -> list[str]:
    """The solvers that have rows, ours first."""
    return sorted({row["solver"] for row in rows}, key=lambda one: (one != "softmap", one.lower()))


def energy(row: Row) -> float:
    """The energy of a row; +inf if the solver has no labelling."""
    return math.inf if row["energy"] is None else float(row["energy"])


def bound(row: Row) -> float:
    """The lower bound of a row; -inf if the solver has none."""
    return -math.inf if row["bound"] is None else float(row["bound"])


def slack(value: float, tolerance: float = 0.0) -> float:
    """How far from a value another one counts as equal."""
    return max(tolerance, SAME * max(1.0, abs(value)))


class Standing:
    """All rows of one model, and the best values among them."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.best = min(map(energy, rows))
        # a bound above a labelling is wrong and does not count
        self.limit = self.best + 1e-5 * max(1.0, abs(self.best))
        self.high = max((bound(r) for r in rows if bound(r) <= self.limit), default=-math.inf)
        self.reference: float | None = rows[0]["reference"]

    def leads(self, row: Row) -> bool:
        """Whether a labelling is at the reference, or at the best of the run without one."""
        level = self.best if self.reference is None else self.reference
        return math.isfinite(energy(row)) and energy(row) <= level + slack(
            level, row.get("tolerance", 0.0)
        )

    def best_labels(self, row: Row) -> bool:
        """Whether no solver of the run has a better labelling."""
        return math.isfinite(energy(row)) and energy(row) <= self.best + slack(self.best)

    def best_bound(self, row: Row) -> bool:
        """Whether no solver of the run has a higher bound that no labelling contradicts."""
        sound = math.isfinite(bound(row)) and bound(row) <= self.limit
        return sound and bound(row) >= self.high - slack(self.high)

    def decides(self, row: Row) -> bool:
        """Whether a solver states a proof that no labelling of the run contradicts."""
        if not math.isfinite(energy(row)):
            return bool(row["proved"]) and not math.isfinite(self.best)
        return bool(row["proved"]) and energy(row) <= self.limit


def standings(rows: list[Row]) -> list[Standing]:
    """One entry per model."""
    models = sorted({row["model"] for row in rows}, key=str.lower)
    return [Standing([row for row in rows if row["model"] == model]) for model in models]


def counts(rows: list[Row]) -> list[list[str]]:
    """One line per solver of a family: what it decided, found and bounded."""
    found, body = standings(rows), []
    for solver in solvers(rows):
        own = [(s, row) for s in found for row in s.rows if row["solver"] == solver]
        line = [
            sum(s.decides(row) for s, row in own),
            sum(s.leads(row) for s, row in own),
            sum(s.best_labels(row) for s, row in own),
            sum(s.best_bound(row) for s, row in own),
            sum(not math.isfinite(energy(row)) for _, row in own),
        ]
        body.append([solver, str(len(own)), *map(str, line)])
    return body


HEAD = [
    "solver", "models", "proved", "at the reference", "best labelling", "best bound", "no labelling"
]  # fmt: skip


def overview(rows: list[Row]) -> str:
    """One line per family and solver."""
    body = []
    for family in families(rows):
        lines = counts([row for row in rows if row["family"] == family])
        body += [[family if k == 0 else "", *line] for k, line in enumerate(lines)]
    return markdown(["family", *HEAD], body)


def family_table(rows: list[Row]) -> str:
    """Every model of a family: energy, bound and time to the proof of each solver."""
    names = solvers(rows)
    body = []
    for standing in standings(rows):
        cells = {row["solver"]: _cell(standing, row) for row in standing.rows}
        known = "" if standing.reference is None else f"{standing.reference:.8g}"
        model = standing.rows[0]["model"]
        body.append([model, known, *(cells.get(name, "–") for name in names)])
    return markdown(["model", "reference", *names], body)


def _cell(standing: Standing, row: Row) -> str:
    value = f"{energy(row):.8g}" if math.isfinite(energy(row)) else "–"
    value = f"**{value}**" if standing.best_labels(row) else value
    if row["proved"]:
        value = "infeasible" if value == "–" else value
        contradicted = "" if standing.decides(row) else ", contradicted"
        return f"{value} ({row['seconds']:.2f}\u00a0s{contradicted})"
    sign = "≥" if bound(row) <= standing.limit else "≱"
    shown = f"{value} {sign} {bound(row):.8g}" if math.isfinite(bound(row)) else value
    failures = row.get("failures")
    return shown if failures is None else f"{shown}, {failures} failures"


def family_tables(rows: list[Row]) -> str:
    """One table per family, under its name."""
    return "\n\n".join(
        f"## {family}\n\n{family_table([row for row in rows if row['family'] == family])}"
        for family in families(rows)
    )
