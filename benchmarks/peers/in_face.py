"""In-face Frank-Wolfe steps over chains, written from the description of the method.

Kolmogorov, "Solving relaxations of MAP-MRF problems: combinatorial in-face Frank-Wolfe directions"
(CVPR 2023), for the proximal method of Swoboda and Kolmogorov (CVPR 2019). λ divides the costs of
the nodes among chains. A proximal step in λ is a smooth problem over the marginals of all chains:
<c + λ, x> + τ/2 |x minus its mean over chains|². Chains are visited in turn. A visit makes a
Frank-Wolfe step, and then steps in the smallest face that holds the marginals, forward to its best
vertex or away from its worst one, by dynamic programming over the pairs with positive marginals.
Differences to the authors' program: chains (no trees), a rule for τ, and no contraction of chains.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.base import Answer, Prepared, Settings
from softmap.methods.sweeps.chains import Chains
from softmap.model import Model, Network
from softmap.paper.chain_dual import ChainDual, paths
from softmap.relaxation.gaps import cost_scale, gap_unit

WITHIN = 10  # most steps in a face per visit
SWEEPS = 3  # visits of all chains between two evaluations of the dual
ENOUGH = 0.25  # of the increase that the proximal problem promises, to move its centre
PATIENT = 10  # evaluations without a move, after which τ falls
FACTOR = 1.5  # by which τ rises and falls
RANGE = 1e3  # most τ over the scale of the costs, and its reciprocal
HERE = Path(__file__).resolve().parent
POINTERS = ("start", "node", "labels", "at", "pair_at", "node_at", "many", "cost", "pair", "centre",
            "x", "y", "sum")  # fmt: skip

Floats = NDArray[np.float64]


class _Chains(ctypes.Structure):
    _fields_ = [
        ("count", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in POINTERS),
        ("tau", ctypes.c_double),
    ]


def library() -> Any:
    """Compile in_face.cpp for this machine, once, and load it."""
    source, folder = HERE / "in_face.cpp", HERE.parents[1] / "build" / "peers"
    built = folder / "in_face.so"
    if not built.is_file() or built.stat().st_mtime < source.stat().st_mtime:
        compiler = shutil.which("g++") or shutil.which("clang++")
        if compiler is None:
            raise ValueError("needs a C++ compiler")
        folder.mkdir(parents=True, exist_ok=True)
        options = ["-std=c++17", "-O3", "-march=native", "-shared", "-fPIC"]
        subprocess.run([compiler, *options, str(source), "-o", str(built)], check=True)
    loaded = ctypes.CDLL(str(built))
    loaded.dual.restype = ctypes.c_double
    return loaded


class InFace:
    """The proximal method over the chains of one network with finite costs.

    Attributes
    ----------
    centre : float64 array
        λ of the centre, over the labels of the positions on chains.
    value : float
        The dual function at the centre, a lower bound of the LP.
    sweeps : int
        Visits of all chains so far.
    """

    def __init__(self, network: Network) -> None:
        self.network, self._lib = network, library()
        found = paths(network)
        order, starts = _in_chains(found.before, found.after)
        self.order, node = order, found.node[order]
        counts = network.num_labels[node].astype(np.int64)
        at = np.cumsum(counts) - counts
        many = np.bincount(found.node, minlength=network.n).astype(np.float64)
        self.entry = np.repeat(network.node_offset[node] - at, counts) + np.arange(counts.sum())
        tables = [_table(network, half) for half in found.after[order]]
        sizes = np.array([t.size for t in tables])
        arrays: dict[str, NDArray[Any]] = {
            "start": starts, "node": node.astype(np.int64), "labels": counts, "at": at,
            "pair_at": np.cumsum(sizes) - sizes, "node_at": network.node_offset[:-1].copy(),
            "many": many, "cost": (network.unary / np.repeat(many, network.num_labels))[self.entry],
            "pair": np.concatenate(tables), "centre": np.zeros(len(self.entry)),
            "x": np.zeros(len(self.entry)), "y": np.zeros(int(sizes.sum())),
            "sum": np.zeros(len(network.unary)),
        }  # fmt: skip
        self.arrays = arrays
        self.centre, self.x = arrays["centre"], arrays["x"]
        pointers = [arrays[name].ctypes.data for name in POINTERS]
        self._chains = _Chains(len(starts) - 1, *pointers, 0.0)
        self._many = np.repeat(many, network.num_labels)
        self._lib.begin(ctypes.byref(self._chains))
        self.value, self.sweeps, self.waited = self.dual(), 0, 0
        self._scale = self._chains.tau = cost_scale(network)

    def dual(self) -> float:
        """Return the dual function at the λ of the marginals."""
        return float(self._lib.dual(ctypes.byref(self._chains))) + self.network.constant

    def mean(self) -> Floats:
        """Return the means of the marginals over the chains of each node."""
        made: Floats = self.arrays["sum"] / self._many
        return made

    def spread(self) -> Floats:
        """Return the marginals minus their means."""
        made: Floats = self.x - self.mean()[self.entry]
        return made

    def advance(self) -> None:
        """Visit all chains a few times; move the centre if that gains enough, and adapt τ."""
        tau, sums = self._chains.tau, self.arrays["sum"]
        sums[:] = np.bincount(self.entry, self.x)  # without the rounding errors of the visits
        self._lib.sweep(ctypes.byref(self._chains), SWEEPS, WITHIN)
        self.sweeps += SWEEPS
        self.waited += 1
        spread, value = self.spread(), self.dual()
        promised = self.cost() + self.centre @ self.x + 0.5 * tau * (spread @ spread)
        if value - self.value >= ENOUGH * max(promised - self.value, 0.0):
            self.centre += tau * spread
            self.value = value
            if self.waited == 1:
                self._chains.tau = min(FACTOR * tau, self._scale * RANGE)
            self.waited = 0
        elif self.waited % PATIENT == 0:
            self._chains.tau = max(tau / FACTOR, self._scale / RANGE)

    def cost(self) -> float:
        """Return the cost of the marginals of all chains."""
        arrays = self.arrays
        return float(arrays["cost"] @ self.x + arrays["pair"] @ arrays["y"]) + self.network.constant

    def gap(self, reach: float) -> float:
        """Return an estimate of the gap once the marginals of the chains agree.

        Parameters
        ----------
        reach : float
            The largest range of a table of costs: what a unit of mass costs at most to move.
        """
        return self.cost() + reach * float(np.abs(self.spread()).sum()) / 2 - self.value

    def answer(self, status: str) -> Answer:
        """Return a λ of the model that proves the value, and the mean marginals."""
        dual = ChainDual(Chains(self.network, 1))
        change = np.zeros(len(self.entry))
        places = np.cumsum(dual.counts) - dual.counts
        counts = dual.counts[self.order]
        into = np.repeat(places[self.order] - (np.cumsum(counts) - counts), counts)
        change[into + np.arange(len(change))] = self.centre
        lam = dual.bounding(change)[1]
        work = 2 * self.network.m * self.sweeps
        return Answer(lam, self.mean(), status, iterations=self.sweeps, work=work)


def _in_chains(before: NDArray[Any], after: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the copies chain by chain, and the start of each chain."""
    at = np.full(2 * (max(before.max(), after.max()) // 2 + 1), -1)
    at[before[before >= 0]] = np.flatnonzero(before >= 0)
    order, starts = [], [0]
    for copy in np.flatnonzero(before < 0).tolist():
        order.append(copy)
        while after[order[-1]] >= 0:
            order.append(int(at[after[order[-1]] ^ 1]))
        starts.append(len(order))
    return np.array(order), np.array(starts)


def _table(network: Network, half: int) -> Floats:
    """Return the table of the edge that leads on from a half-edge, rows by its earlier end."""
    if half < 0:
        return np.zeros(0)
    table = network.table(int(half) // 2)
    return np.ascontiguousarray(table.T if half % 2 else table, dtype=np.float64).reshape(-1)


def prepare(model: Model, settings: Settings) -> Prepared:
    """Compile the loops, and set up chains."""
    network = model.network
    if network.has_forbidden or network.has_factors:
        raise ValueError("written here for finite costs and edges")
    method = InFace(network)
    reach = max(float(np.ptp(method.arrays["pair"])), float(np.ptp(network.unary)))

    def solve() -> Answer:
        end = time.process_time() + settings.time_limit  # one thread
        while time.process_time() < end:
            method.advance()
            if method.gap(reach) <= settings.tolerance * gap_unit(method.value):
                return method.answer("done")
        return method.answer("time limit")

    return solve
