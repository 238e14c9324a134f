"""From rows to the tables that answer "how much faster, at which gap"."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.instances import INSTANCES, OPTIMA
from benchmarks.peers import PEERS
from benchmarks.races import energies_at, passes_to_bound, race_of, worst_lag
from softmap.relaxation.gaps import gap_unit

Row = dict[str, Any]
TARGETS = {"grid": 20.0, "tree": 20.0, "random": 3.0, "data": 3.0}


def line(row: Row) -> str:
    """One run in one line, for the eyes of whoever waits."""
    asked = f"gap {row['gap']:.0e}" if row["gap"] else "race"
    return (
        f"{row['instance']:>12} {row['method']:>13} {asked:>9} "
        f"{row['seconds']:8.2f} s {row.get('cpu_seconds', math.nan):8.2f} cpu "
        f"{row['lp_gap']:9.1e} {'ok' if row['reached'] else '--'}  {row['status']}"
    )


def fastest(rows: list[Row], instance: str, gap: float, kind: str) -> Row | None:
    """The fastest run of a kind that certified the gap."""
    reached = [
        r
        for r in rows
        if r["instance"] == instance
        and r["gap"] == gap
        and r["reached"]
        and PEERS[r["method"]].kind == kind
    ]
    return min(reached, key=lambda r: r["seconds"]) if reached else None


def tables(rows: list[Row]) -> str:
    """All tables, as Markdown."""
    parts = [times(rows), ratios(rows), races(rows), contradictions(rows)]
    return "\n\n".join(part for part in parts if part) + "\n"


def times(rows: list[Row]) -> str:
    """Seconds (CPU seconds) to each certified gap, methods down, gaps across."""
    gaps = sorted({r["gap"] for r in rows if r["gap"]}, reverse=True)
    counted = ["iterations", "memory MB"]
    head = ["instance", "method", *(f"{g:.0e}" for g in gaps), *counted]
    body = []
    for instance, method in dict.fromkeys((r["instance"], r["method"]) for r in rows):
        mine = [r for r in rows if (r["instance"], r["method"]) == (instance, method) and r["gap"]]
        if mine:
            ended = [r for r in mine if r["reached"]] or mine
            cells = [_seconds([r for r in mine if r["gap"] == g]) for g in gaps]
            counts = _count(ended, "iterations")
            memory = max((r.get("memory_mb", 0.0) for r in mine), default=0.0)
            body.append([instance, method, *cells, counts, f"{memory:.0f}"])
    return "## Seconds (CPU seconds) to a certified relative LP gap\n\n" + markdown(head, body)


def _seconds(rows: list[Row]) -> str:
    reached = [r for r in rows if r["reached"]]
    if reached:
        return f"{reached[0]['seconds']:.3g} ({reached[0]['cpu_seconds']:.3g})"
    if not rows:
        return ""
    best = min(rows, key=lambda r: r["lp_gap"])
    if math.isinf(best["lp_gap"]):
        return str(best["status"])
    return f"not in {max(r['seconds'] for r in rows):.3g}: {best['lp_gap']:.1e}"


def _count(rows: list[Row], column: str) -> str:
    return " / ".join(f"{r.get(column, 0):,.0f}" for r in rows if r.get(column))


def ratios(rows: list[Row]) -> str:
    """Our best time beside that of the fastest LP peer."""
    head = ["instance", "gap", "ours", "s", "passes", "fastest LP peer", "s", "ratio", "to reach"]
    body = []
    for instance, gap in dict.fromkeys((r["instance"], r["gap"]) for r in rows if r["gap"]):
        ours, peer = (fastest(rows, instance, gap, kind) for kind in ("ours", "lp"))
        # stored runs may speak of instances whose files are not here: those are "data"
        family = INSTANCES[instance].family if instance in INSTANCES else "data"
        target = TARGETS[family] if gap >= 1e-4 else 1.0
        body.append(
            [
                instance,
                f"{gap:.0e}",
                *(_who(ours)),
                f"{ours['iterations']}" if ours else "",
                *(_who(peer)),
                f"{peer['seconds'] / ours['seconds']:.1f}×" if ours and peer else "",
                f"{target:.0f}×",
            ]
        )
    return "## Against the fastest LP peer\n\n" + markdown(head, body)


def _who(row: Row | None) -> list[str]:
    return [row["method"], f"{row['seconds']:.3g}"] if row else ["none", ""]


def races(rows: list[Row]) -> str:
    """Bounds and energies against time, beside our own TRW-S."""
    body = []
    for instance in dict.fromkeys(r["instance"] for r in rows):
        ours, rival = (race_of(rows, instance, m) for m in ("anneal", "trws"))
        if not ours or not rival:
            continue
        edges = ours["edges"]
        passes = [""] * 2
        if instance in OPTIMA:
            known = OPTIMA[instance][1]
            passes = [
                f"{passes_to_bound(ours['trace'], edges, known, gap):.0f}" for gap in (1e-3, 1e-4)
            ]
        energy = energies_at(ours["trace"], rival["trace"])
        body.append(
            [
                instance,
                *passes,
                f"{worst_lag(ours['trace'], rival['trace'], edges):.2f}",
                *(f"{value:.6g}" for value in energy),
            ]
        )
    head = ["instance", "passes to bound 1e-3", "1e-4", "worst lag", "energy", "energy of TRW-S"]
    return "## Beside our own TRW-S, same time\n\n" + markdown(head, body) if body else ""


def contradictions(rows: list[Row]) -> str:
    """Rows that a known bracket of the LP optimum proves wrong: there should be none."""
    wrong = []
    for row in rows:
        low, high = OPTIMA.get(row["instance"], (-math.inf, math.inf))
        slack = 1e-9 * gap_unit(row["bound"])
        if row["bound"] > high + slack or row["primal"] < low - slack:
            wrong.append(f"- {line(row)}")
    return "\n".join(["## These contradict the known LP optima", "", *wrong]) if wrong else ""


def markdown(head: list[str], body: list[list[str]]) -> str:
    """A Markdown table, columns aligned."""
    widths = [max(len(row[k]) for row in [head, *body]) for k in range(len(head))]
    lines = [[cell.ljust(w) for cell, w in zip(row, widths, strict=True)] for row in [head, *body]]
    lines.insert(1, ["-" * w for w in widths])
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)
