"""The kernel launches of a half pass, level by level."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.methods.cuda.arena import Arena
from softmap.methods.cuda.devices import Device, Launch
from softmap.methods.cuda.shapes import Shape, steepest
from softmap.methods.cuda.tiling import LANES, TileLinks


class Heat(IntEnum):
    """The formula for messages; see ``src/core/cuda/edges.hpp``."""

    HARD = 0
    MILD = 1
    COLD = 2


@dataclass(frozen=True)
class Ranges:
    """The largest safe arguments of exp: `safe` of ``src/core/cuda/numbers.hpp``."""

    single: float = 80.0  # in single precision
    double: float = 600.0  # in double precision


RANGES = Ranges()


@dataclass(frozen=True)
class Heats:
    """The choice of a formula for messages that does not overflow at a given η.

    Attributes
    ----------
    steepest : float
        The largest cost in the sums of exponentials of a closed form.
    safe : float
        The largest safe argument of exp in the precision of the messages.
    coldest : Heat
        The formula for large η; most families have a single formula for all η.
    """

    steepest: float
    safe: float
    coldest: Heat

    @classmethod
    def of(cls, arena: Arena) -> Heats:
        """Return the choice for a model."""
        shape = arena.shape
        coldest = Heat.COLD if shape.heats else Heat.MILD
        safe = RANGES.double if shape.wide else RANGES.single
        return cls(steepest(arena.model), safe, coldest)

    def at(self, eta: float) -> Heat:
        """Return the formula at η."""
        return Heat.MILD if eta * self.steepest <= self.safe else self.coldest


@dataclass(frozen=True, eq=False)
class Half:
    """A half pass: its direction, the formula for messages, and its arrays."""

    forward: bool
    heat: Heat
    msg: Any = None
    prev: Any = None
    control: Any = None
    shift: Any = None

    @property
    def parameters(self) -> str:
        """The template parameters of the kernels."""
        moving = "false" if self.heat is Heat.HARD else "true"
        return f"{str(self.forward).lower()}, {int(self.heat)}, {moving}"


@dataclass(frozen=True, eq=False)
class Level:
    """The tiles of one level, their kernels, and the position of their partial sums."""

    first: int
    count: int
    early: int
    late: int
    shape: Shape
    block: int  # its first block in a backward half pass; each block writes one partial sum
    device: Device
    team: int = 1  # number of warps per tile

    def sends(self, forward: bool) -> bool:
        """Whether the level has edges in this direction."""
        return bool(self.late if forward else self.early)

    def kernels(self, half: Half) -> list[str]:
        """The kernels of a half pass."""
        return [f"half_pass<{self.shape.name}, {half.parameters}, {self.team}>"]

    def launches(self, half: Half, products: Any) -> list[Launch]:
        """Return the launches of a half pass, without the arguments of the arena."""
        arguments = [half.msg, half.prev, half.control, products, half.shift, self.first]
        return [(self.kernels(half)[0], self._threads(half.forward), [*arguments, self.count])]

    def _threads(self, forward: bool) -> int:
        together = self.team if self.device.teams else 1
        return self.count * LANES * together * self.shape.ways(forward)

    @property
    def blocks(self) -> int:
        """Blocks of a backward half pass."""
        return max(1, -(-self._threads(False) // self.device.block))


@dataclass(frozen=True, eq=False)
class LinkedLevel(Level):
    """A level whose messages are stored by edge: nodes sum their messages, then edges send."""

    sums: Any = None
    receiver: Any = None
    chunks: tuple[Any, Any] = (None, None)  # backward, forward

    def kernels(self, half: Half) -> list[str]:
        """The kernels of a half pass."""
        both = f"<{self.shape.name}, {half.parameters}>"
        return [f"add_up_nodes{both}", f"send_along{both}"]

    def launches(self, half: Half, products: Any) -> list[Launch]:
        """Return the launches of a half pass, without the arguments of the arena."""
        add, send = self.kernels(half)
        given = [half.msg, half.prev, half.control]
        chunks = self.chunks[half.forward]
        return [
            (add, self.count * LANES, [*given, self.sums, self.first, self.count]),
            (send, len(chunks) // 2 * self.device.block,
             [*given, products, half.shift, self.sums, self.receiver, chunks]),
        ]  # fmt: skip

    @property
    def blocks(self) -> int:
        """Blocks of a backward half pass."""
        return max(1, len(self.chunks[False]) // 2)


class Levels:
    """The levels of an arena, and the partial sums of the inner product of the restart test."""

    def __init__(self, arena: Arena) -> None:
        self._arena, self._levels = arena, _levels_of(arena)
        blocks = sum(level.blocks for level in self._levels)
        self.products = arena.device.zeros(blocks, np.float64)
        self._parts = [self.products[k.block : k.block + k.blocks] for k in self._levels]

    def kernels(self, heat: Heat) -> list[str]:
        """Return the kernels of a pass, in the order of their launches."""
        halves = (Half(forward, heat) for forward in (True, False))
        return [
            name for half in halves for level in self._levels if level.sends(half.forward)
            for name in level.kernels(half)
        ]  # fmt: skip

    def run(self, half: Half) -> None:
        """Do a half pass, level by level; levels that send nothing are skipped."""
        arena = self._arena
        both = list(zip(self._levels, self._parts, strict=True))
        for level, products in both if half.forward else both[::-1]:
            if level.sends(half.forward):
                for kernel, threads, given in level.launches(half, products):
                    arena.device.launch(kernel, threads, [arena.record, *given])


def _levels_of(arena: Arena) -> list[Level]:
    tiles, start = arena.tiling.tiles, arena.tiling.level_start
    size = arena.threads * arena.shape.labels if arena.links else 1
    sums = arena.device.zeros(size, arena.dtype)
    receiver = arena.device.upload(arena.links.receiver) if arena.links else None
    out: list[Level] = []
    block = 0
    for number, (first, last) in enumerate(zip(start[:-1].tolist(), start[1:].tolist())):  # noqa: B905
        level = _level(arena, tiles[first:last], first, block)
        if arena.links is not None:
            level = _linked(arena.links, level, number, sums, receiver)
        out.append(level)
        block += level.blocks
    return out


def _level(arena: Arena, tiles: NDArray[np.void], first: int, block: int) -> Level:
    early, late = (int(tiles[name].max(initial=0)) for name in ("early", "late"))
    shape = arena.shape.bounded(early, late)
    if not arena.device.offers(shape):
        shape = arena.shape
    team = _team(tiles) if shape.teamed else 1
    return Level(first, len(tiles), early, late, shape, block, arena.device, team)


def _linked(links: TileLinks, level: Level, number: int, sums: Any, receiver: Any) -> LinkedLevel:
    device = level.device
    backward, forward = (
        device.upload(links.chunks(number, way, device.block).reshape(-1)) for way in (False, True)
    )
    return LinkedLevel(
        level.first, level.count, level.early, level.late, level.shape, level.block, device,
        sums=sums, receiver=receiver, chunks=(backward, forward),
    )  # fmt: skip


def _team(tiles: NDArray[np.void]) -> int:
    """Return the number of warps per tile: about the number of messages that a node sends."""
    nodes = max(int(tiles["used"].sum()), 1)
    sent = max(float((tiles[name] * tiles["used"]).sum()) for name in ("early", "late")) / nodes
    return 2 if sent <= 2.0 else 4 if sent <= 4.0 else 8
