"""Weak scaling, replayed: measured compute and message sizes against published interconnects.

Prints the tables of `docs/benchmarks/distributed.md`. Nothing here is a measurement of a cluster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

PER_EDGE = 0.23e-6  # seconds of one core per edge and pass, Potts with 8 labels (measured)
UNEVEN = 1.05  # slowest process over the mean (measured)


@dataclass(frozen=True)
class Link:
    """One direction of one process's link."""

    name: str
    latency: float  # seconds; assumed, as data sheets measure it in other ways
    bandwidth: float  # bytes per second, published


LINKS = (
    Link("100 Gb/s Ethernet, TCP", 20e-6, 12.5e9),
    Link("InfiniBand HDR, 200 Gb/s", 2e-6, 25e9),
    Link("InfiniBand NDR, 400 Gb/s", 2e-6, 50e9),
)


def exchange(link: Link, size: float, messages: int) -> float:
    return messages * link.latency + size / link.bandwidth


def grid_pass(link: Link, processes: int, edges: float, labels: int, compute: float) -> float:
    """Seconds of a pass over a grid of so many edges per process, two phases, four neighbours."""
    side = math.sqrt(edges / 2)
    cut = 4 * side if processes > 1 else 0.0
    exchanges = 2 * 2 * exchange(link, cut * labels * 8 / 4, 4) if processes > 1 else 0.0
    reduction = 2 * math.ceil(math.log2(processes)) * link.latency
    return compute * UNEVEN + exchanges + reduction


def weak() -> None:
    print(
        "| edges per process | link | 8 | 64 | 1,024 processes |\n| --- | --- | --- | --- | --- |"
    )
    for edges in (1e4, 1e5, 1e6):
        compute = edges * PER_EDGE
        for link in LINKS:
            shares = [
                compute / grid_pass(link, processes, edges, 8, compute)
                for processes in (8, 64, 1024)
            ]
            cells = " | ".join(f"{share:.0%}" for share in shares)
            print(f"| {edges:,.0f} | {link.name} | {cells} |")


if __name__ == "__main__":
    weak()
