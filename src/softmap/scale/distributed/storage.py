"""Models in parts and checkpoints on disk: folders with one file per part and a manifest.

The files of a model hold the arrays of `ModelPart.arrays`, uncompressed. Each process maps the
files of its own parts into memory; no process reads all parts.

The archives of a new checkpoint have new names. The manifest lists them with their digests and is
written last, atomically. The folder therefore holds a complete checkpoint whenever a process dies.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import Model, Potts, generators
from softmap.arguments import count, real
from softmap.errors import CheckpointError, FormatError, OptionError, WriteError, shown
from softmap.extend import Network, checked_model, store
from softmap.extend.parts import ModelPart, PartsProgress, PartsRun, Whole, cut_model, part_nodes
from softmap.extend.parts import partition as partitioned

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
    grid = _GridParts(rows, cols, d, down, across, weight, seed)
    write_folder(folder, grid.whole(), map(grid.part, range(down * across)))


class _GridParts:
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

    def part(self, number: int) -> ModelPart:
        """The part of a tile."""
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
        model = Network(self._unary(nodes), local, potts)
        return ModelPart(number, model, len(own), nodes, edges, home, self._turn(home))

    def _edges(self, r0: int, r1: int, c0: int, c1: int) -> tuple[Ints, Ints]:
        """Endpoints and numbers (as in `grid_edges`) of all edges with a node in the tile."""
        rows = np.arange(max(r0 - 1, 0), min(r1 + 1, self.rows))
        cols = np.arange(max(c0 - 1, 0), min(c1 + 1, self.cols))
        around = (rows[:, None] * self.cols + cols).reshape(-1)
        ends = around[generators.grid_edges(len(rows), len(cols))]
        row, col = np.divmod(ends, self.cols)
        inside = ((r0 <= row) & (row < r1) & (c0 <= col) & (col < c1)).any(axis=1)
        # the edge to the right of a node, and below all those the edge down from it
        right, down = ends[:, 0] - row[:, 0], self.rows * (self.cols - 1) + ends[:, 0]
        edges = np.where(row[:, 0] == row[:, 1], right, down)
        return ends[inside], edges[inside]

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
    network = checked_model(model).network
    part = partitioned(network, count("parts", parts, 1), partition)
    whole, pieces = cut_model(network, part)
    write_folder(folder, whole, pieces)


def checked_folder(folder: Any) -> Path:
    """Return the path of a folder, or raise `OptionError`."""
    if not isinstance(folder, str | os.PathLike) or "\0" in str(folder):
        raise OptionError(f"expected a folder, not {shown(folder)}")
    return Path(folder)


def write_folder(folder: Any, whole: Whole, parts: Iterable[ModelPart]) -> None:
    """Write parts one by one, then the manifest: a folder with a manifest is complete."""
    path = checked_folder(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / MANIFEST).unlink(missing_ok=True)
    except OSError as error:
        raise WriteError(path, error) from error
    for part in parts:
        with store.replacing(_file(path, part.number)) as file:
            store.write_arrays(file, part.arrays())
    facts = {name: getattr(whole, name) for name in (*COUNTS, "constant", "fingerprint")}
    facts |= {"kind": KIND, "version": VERSION, "turns": whole.turns.tolist()}
    store.write_text(path / MANIFEST, [json.dumps(facts, indent=1), "\n"])


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
        raise FormatError(f"damaged manifest ({error})", path) from error
    if len(whole.turns) != whole.parts or not np.isfinite(whole.constant):
        raise FormatError("damaged manifest: its numbers contradict each other", path)
    return whole


def read_part(folder: Path, number: int, whole: Whole) -> ModelPart:
    """Return a part, mapped into memory."""
    path = _file(folder, number)
    return ModelPart.of_arrays(number, store.mapped(path), whole, path)


STATE, PART, STATE_VERSION = "checkpoint in parts", "part of a checkpoint", 4
STATE_MANIFEST = "checkpoint.json"


def save(folder: Path, run: PartsRun) -> None:
    """Write a checkpoint; collective call of all processes."""
    team, serial, problem = run.team, f"{run.progress.passes:010d}", ""
    digests: dict[int, str] = {}
    run.passes.wait_for_product()
    try:
        folder.mkdir(exist_ok=True)
        for number in run.passes.chains:
            arrays, named = run.arrays(number), {"model": run.whole.fingerprint, "number": number}
            header = {"kind": PART, "version": STATE_VERSION, **named}
            digests[number] = store.digest(header, arrays)
            store.write_archive(_state_file(folder, serial, number), header, arrays)
    except (OSError, MemoryError) as error:
        problem = str(error) or type(error).__name__
    if words := team.first_problem(problem):
        raise WriteError(folder, words)
    every = {k: text for found in team.comm.allgather(digests) for k, text in found.items()}
    if team.rank == 0:
        try:
            _save_manifest(folder, serial, run, [every[k] for k in range(run.whole.parts)])
        except OSError as error:
            problem = str(error)
    if words := team.first_problem(problem):  # no process continues before it is written
        raise WriteError(folder, words)


def _state_file(folder: Path, serial: str, number: int) -> Path:
    return folder / f"part-{number:05d}-{serial}.npz"


def _save_manifest(folder: Path, serial: str, run: PartsRun, digests: list[str]) -> None:
    facts: dict[str, Any] = {
        "kind": STATE,
        "version": STATE_VERSION,
        "model": run.whole.fingerprint,
        "serial": serial,
        "digests": digests,
        "clock": run.passes.clock.tolist(),
        **run.progress.facts(),
    }
    facts["progress"]["primal"] = run.best.point_cost
    facts["digest"] = store.digest(facts, {})
    store.write_text(folder / STATE_MANIFEST, [json.dumps(facts), "\n"])
    for old in folder.glob("part-*.npz"):
        if not old.name.endswith(f"-{serial}.npz"):
            old.unlink(missing_ok=True)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a folder; raise an error if it is damaged."""
    path = folder / STATE_MANIFEST
    try:
        facts = json.loads(path.read_text("utf-8"))
        told = facts.pop("digest")
        sound = facts["kind"] == STATE and told == store.digest(facts, {})
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise CheckpointError(f"{path}: expected the manifest of a checkpoint in parts") from error
    if not sound or facts.get("version") != STATE_VERSION:
        raise CheckpointError(f"{path}: not a manifest of this version, or changed since")
    return dict(facts)


def restore(folder: Path, facts: dict[str, Any], run: PartsRun) -> None:
    """Restore a stored state into a new run; collective call of all processes."""
    problem, lam, labels = "", {}, {}
    try:
        if facts["model"] != run.whole.fingerprint:
            raise CheckpointError(f"{folder}: this checkpoint belongs to another model")
        for number in run.passes.chains:
            arrays = _stored_part(folder, facts, number, run)
            run.put(number, arrays)
            lam[number], labels[number] = arrays["lam"], arrays["labels"]
        clock, primal = np.array(facts["clock"], dtype=np.float64), facts["progress"]["primal"]
        run.restore(PartsProgress.of_facts(facts), clock, float(primal), lam, labels)
    except Exception as error:  # a damaged file may cause errors of any type
        problem = str(error) or type(error).__name__
    if words := run.team.first_problem(problem):
        raise CheckpointError(words)


def _stored_part(
    folder: Path, facts: dict[str, Any], number: int, run: PartsRun
) -> dict[str, NDArray[Any]]:
    """The stored arrays of a part, after the necessary checks."""
    path = _state_file(folder, facts["serial"], number)

    def problem(sentence: str) -> CheckpointError:
        return CheckpointError(f"{path}: {sentence}")

    header, arrays = store.read_archive(path, PART, STATE_VERSION, problem)
    if store.digest(header, arrays) != facts["digests"][number]:
        raise problem("not the part that the manifest names")
    for name, place in run.arrays(number).items():
        found = arrays[name]
        if (found.dtype, found.shape) != (place.dtype, place.shape):
            raise problem(f"{name}: expected {place.dtype}{place.shape}, cut otherwise")
    labels, counts = arrays["labels"], run.passes.chains[number].part.model.num_labels
    if (labels < 0).any() or (labels >= counts).any():
        raise problem("a label is out of its range")
    return arrays
