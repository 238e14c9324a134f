"""Models in parts on disk: a folder with one file per part and a manifest.

Each file holds the arrays of `softmap.io.npz` and the arrays `EXTRA`, uncompressed. Each process
maps the files of its own parts into memory; no process reads all parts.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.arguments import count, real
from softmap.errors import FormatError, OptionError, WriteError, shown
from softmap.io.atomic import replacing, write_text
from softmap.io.npz import mapped, model_arrays, model_from_arrays
from softmap.model import Model, Potts, checked_model
from softmap.model.partition import partition as partitioned
from softmap.scale.distributed.parts import Part, Whole, cut_model, part_nodes

Ints = NDArray[np.int64]


def write_grid(
    folder: str | os.PathLike[str],
    rows: int,
    cols: int,
    d: int = 8,
    *,
    tiles: tuple[int, int] = (2, 2),
    weight: float = 0.3,
    seed: int = 0,
) -> None:
    """Write a Potts grid in parts: unary costs uniform on [0, 1], one weight for all edges.

    The grid is like `softmap.generators.potts_grid`, but each cost depends only on the seed, the
    variable and the label, so that parts are generated one by one. The phases of a pass are the two
    colours of a checkerboard of tiles.

    Parameters
    ----------
    folder : str or Path
        The folder.
    rows, cols : int
        Size of the grid, in variables.
    d : int
        Number of labels.
    tiles : (int, int)
        Number of tiles vertically and horizontally; each tile is a part.
    weight : float
        Potts weight of all edges.
    seed : int
        Random seed.
    """
    rows, cols, d = count("rows", rows, 1), count("cols", cols, 1), count("d", d, 1)
    weight, seed = real("weight", weight), count("seed", seed)
    try:
        down, across = (count("tiles", number, 1) for number in tiles)
    except (TypeError, ValueError) as error:
        raise OptionError("tiles: expected two whole numbers") from error
    if down > rows or across > cols or rows * cols >= 1 << 31:
        raise OptionError(f"{rows} x {cols} variables in {down} x {across} tiles: expected fewer")
    grid = _Grid(rows, cols, d, down, across, weight, seed)
    write_folder(folder, grid.whole(), grid.parts())


class _Grid:
    """A grid whose costs depend only on the seed, the variable and the label."""

    def __init__(
        self, rows: int, cols: int, d: int, down: int, across: int, weight: float, seed: int
    ) -> None:
        self.rows, self.cols, self.d, self.weight, self.seed = rows, cols, d, weight, seed
        self.down, self.across = down, across
        self.row_cuts = np.arange(down + 1) * rows // down
        self.col_cuts = np.arange(across + 1) * cols // across

    def whole(self) -> Whole:
        """Properties of the whole model."""
        words = f"grid {self.rows} {self.cols} {self.d} {self.weight!r} {self.seed}"
        return Whole(
            variables=self.rows * self.cols,
            edges=self.rows * (self.cols - 1) + (self.rows - 1) * self.cols,
            parts=self.down * self.across,
            constant=0.0,
            phases=min(2, self.down * self.across),
            turns=self._turn(np.arange(self.down * self.across)),
            fingerprint=hashlib.sha256(words.encode()).hexdigest(),
        )

    def _turn(self, part: Ints) -> Ints:
        return (part // self.across + part % self.across) % 2

    def _home(self, node: Ints) -> Ints:
        row = np.searchsorted(self.row_cuts, node // self.cols, side="right") - 1
        col = np.searchsorted(self.col_cuts, node % self.cols, side="right") - 1
        return np.asarray(row * self.across + col)

    def parts(self) -> Iterator[Part]:
        """Yield the part of each tile."""
        for number in range(self.down * self.across):
            yield self._part(number)

    def _part(self, number: int) -> Part:
        tile_row, tile_col = divmod(number, self.across)
        r0, r1 = self.row_cuts[tile_row], self.row_cuts[tile_row + 1]
        c0, c1 = self.col_cuts[tile_col], self.col_cuts[tile_col + 1]
        own = (np.arange(r0, r1)[:, None] * self.cols + np.arange(c0, c1)).reshape(-1)
        ends, edges = self._edges(int(r0), int(r1), int(c0), int(c1))
        nodes = part_nodes(number, own, ends, self._home(ends))
        order = np.argsort(nodes)
        local = order[np.searchsorted(nodes[order], ends)]
        home = self._home(nodes)
        potts = Potts(np.full(len(edges), self.weight))
        model = Model(self._unary(nodes), local, potts)
        return Part(number, model, len(own), nodes, edges, home, self._turn(home))

    def _edges(self, r0: int, r1: int, c0: int, c1: int) -> tuple[Ints, Ints]:
        """Endpoints and numbers (as in `grid_edges`) of all edges with a node in the tile."""
        row, col = np.meshgrid(
            np.arange(r0, r1), np.arange(max(c0 - 1, 0), min(c1, self.cols - 1)), indexing="ij"
        )
        left = (row * self.cols + col).reshape(-1)
        across = (row * (self.cols - 1) + col).reshape(-1)
        row, col = np.meshgrid(
            np.arange(max(r0 - 1, 0), min(r1, self.rows - 1)), np.arange(c0, c1), indexing="ij"
        )
        upper = (row * self.cols + col).reshape(-1)
        down = self.rows * (self.cols - 1) + upper
        ends = np.concatenate(
            [np.stack([left, left + 1], axis=1), np.stack([upper, upper + self.cols], axis=1)]
        )
        return ends, np.concatenate([across, down])

    def _unary(self, nodes: Ints) -> NDArray[np.float64]:
        """Uniform costs in [0, 1) by seed, variable and label (mixing function of SplitMix64)."""
        key = np.uint64(self.seed * 0x9E3779B97F4A7C15 % 2**64)
        state = nodes.astype(np.uint64)[:, None] * np.uint64(self.d)
        z: Any = (state + np.arange(self.d, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15) + key
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits: NDArray[np.uint64] = (z ^ (z >> np.uint64(31))) >> np.uint64(11)
        return bits.astype(np.float64) * 2.0**-53


KIND, VERSION = "softmap model in parts", 1
MANIFEST = "model.json"
EXTRA = ("nodes", "edges", "home", "phase", "own")  # arrays of a part besides those of its model
COUNTS = ("variables", "edges", "parts", "phases")


def write_parts(
    model: Model, folder: str | os.PathLike[str], parts: int, *, partition: str = "auto"
) -> None:
    """Partition a model and write the parts into a folder.

    Parameters
    ----------
    model : Model
        The model.
    folder : str or Path
        The folder; it is created if it does not exist.
    parts : int
        Number of parts.
    partition : "auto", "grid", "metis" or "own"
        How the variables are partitioned; see `softmap.model.partition.partition`.
    """
    part = partitioned(checked_model(model), count("parts", parts, 1), partition)
    whole, pieces = cut_model(model, part)
    write_folder(folder, whole, pieces)


def write_folder(folder: Any, whole: Whole, parts: Iterable[Part]) -> None:
    """Write parts one by one, then the manifest: a folder with a manifest is complete."""
    if not isinstance(folder, str | os.PathLike) or "\0" in str(folder):
        raise OptionError(f"expected a folder, not {shown(folder)}")
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / MANIFEST).unlink(missing_ok=True)
    except OSError as error:
        raise WriteError(path, error) from error
    for part in parts:
        arrays: dict[str, Any] = {f"part.{name}": getattr(part, name) for name in EXTRA}
        with replacing(_file(path, part.number)) as file:
            np.savez(file, **arrays, **model_arrays(part.model))
    facts = {name: getattr(whole, name) for name in (*COUNTS, "constant", "fingerprint")}
    facts |= {"kind": KIND, "version": VERSION, "turns": whole.turns.tolist()}
    write_text(path / MANIFEST, [json.dumps(facts, indent=1), "\n"])


def _file(folder: Path, number: int) -> Path:
    return folder / f"part-{number:05d}.npz"


def read_whole(folder: Path) -> Whole:
    """Read the properties of the whole model from the manifest."""
    path = folder / MANIFEST
    try:
        facts = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise FormatError("expected the manifest of a model in parts", path) from error
    if not isinstance(facts, dict) or facts.get("kind") != KIND:
        raise FormatError(f"expected a {KIND}", path)
    if facts.get("version") != VERSION:
        raise FormatError(f"format {shown(facts.get('version'))}; expected {VERSION}", path)
    if facts.get("form", "npz") != "npz":  # the form that earlier versions wrote
        raise FormatError(f"parts of form {shown(facts['form'])}; expected npz", path)
    try:
        whole = Whole(
            turns=np.array([count("turns", turn) for turn in facts["turns"]], dtype=np.int64),
            constant=float(facts["constant"]),
            fingerprint=str(facts["fingerprint"]),
            **{name: count(name, facts[name]) for name in COUNTS},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"not a whole manifest ({error})", path) from error
    if len(whole.turns) != whole.parts or not np.isfinite(whole.constant):
        raise FormatError("not a whole manifest: its numbers do not fit together", path)
    return whole


def read_parts(folder: Path, whole: Whole, wanted: range) -> list[Part]:
    """Return some parts, mapped into memory."""
    return [_read(_file(folder, number), number, whole) for number in wanted]


def _read(path: Path, number: int, whole: Whole) -> Part:
    arrays = mapped(path)
    own = {name: arrays.pop(f"part.{name}", None) for name in EXTRA}
    if any(array is None for array in own.values()):
        raise FormatError("expected a part of a model", path)
    model = model_from_arrays(arrays, path)
    found: dict[str, Any] = {name: np.asarray(own[name], dtype=np.int64) for name in EXTRA}
    found["own"] = int(found["own"])
    part = Part(number=number, model=model, **found)
    if not _sound(part, whole):
        raise FormatError("not a sound part: its arrays do not fit together", path)
    return part


def _sound(part: Part, whole: Whole) -> bool:
    """Whether the arrays of a part are consistent, so that other code may rely on them."""
    n, m = part.model.n, part.model.m
    sizes = [(part.nodes, n, whole.variables), (part.home, n, whole.parts)]
    sizes += [(part.phase, n, whole.phases), (part.edges, m, whole.edges)]
    own = part.home == part.number
    return (
        all(a.shape == (k,) and (a >= 0).all() and (a < most).all() for a, k, most in sizes)
        and 0 < part.own <= n
        and bool(own[: part.own].all() and not own[part.own :].any())
        and bool((part.model.edges < part.own).any(axis=1).all())
    )
