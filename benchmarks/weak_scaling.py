"""Weak scaling, replayed: measured compute and message sizes against published interconnects.

Prints the tables of `docs/benchmarks/distributed.md`. Nothing here is a measurement of a cluster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

PER_EDGE = 0.23e-6  # seconds of one core per edge and pass, Potts with 8 labels (measured)
UNEVEN = 1.05  # slowest process over the mean (measured)
# One H200, 1024 x 1024 with 16 labels, messages in single precision (docs/benchmarks/gpu.md)
DEVICE_PASS = {"Potts": 0.523e-3, "dense tables": 1.585e-3}
DEVICE_EDGES = 2 * 1024 * 1023
HBM_SIZE = 141e9  # bytes (its data sheet)
PCIE = 64e9  # bytes per second and direction of PCIe 5.0 x16, published
HOST = 0.5e-3  # seconds of launches and copies on the host in one pass over two parts; assumed


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


def held_by_device(family: str, labels: int) -> int:
    """Bytes per edge of a grid, as `softmap.cuda` holds a part."""
    messages = 4 * 2 * labels * 4  # they, those before, a copy that is polished, the best
    nodes = labels * (8 + 4 + 8 + 8 + 4 + 8) // 2  # half a node per edge: costs twice, shares, μ, …
    slots = 2 * (4 + 4 + 8 + 1 + 8)
    return messages + nodes + slots + (2 * labels**2 * 4 if family == "dense tables" else 0)


def staged(link: Link, size: float, messages: int) -> float:
    """An exchange by way of the host: down, over the link, up."""
    return exchange(link, size, messages) + 2 * size / PCIE


def paper_machine(edges: float = 1e9, labels: int = 16) -> None:
    """Passes on devices, from what one of them was measured to need."""
    link = LINKS[-1]
    print("\n| GPUs | costs | memory each | compute | grid: exchange | random: exchange |")
    print("| --- | --- | --- | --- | --- | --- |")
    for family, seconds in DEVICE_PASS.items():
        for gpus in (8, 64):
            own = edges / gpus
            compute = own * seconds / DEVICE_EDGES
            held = own * held_by_device(family, labels)
            side = math.sqrt(own / 2)
            grid = HOST + staged(link, 4 * side * labels * 4, 2 * 4)
            random = HOST + staged(link, own * labels * 4, 20 * (gpus - 1))
            print(
                f"| {gpus} | {family} | {held / 1e9:.0f} of {HBM_SIZE / 1e9:.0f} GB "
                f"| {compute * 1e3:.1f} ms | {grid * 1e3:.2f} ms | {random * 1e3:.0f} ms |"
            )


if __name__ == "__main__":
    weak()
    paper_machine()
