"""`Result`: the labelling, the certificate, the trace, and the reason why the run stopped."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.arguments import flag
from softmap.errors import ModelError, shown
from softmap.hints import missing
from softmap.io.store import Arrays, checked_path, digest, write_archive
from softmap.later import display, later, made
from softmap.model import Model
from softmap.relaxation.gaps import Gaps
from softmap.relaxation.polytope import PrimalPoint
from softmap.run.evidence import Evidence, RelaxedPoint, evidence_arrays
from softmap.run.failures import StageFailure
from softmap.run.trace import Status, Trace
from softmap.run.values import Penalty

if TYPE_CHECKING:
    from softmap.methods.marginals import SoftMarginals

__all__ = ["ARRAYS", "KIND", "NUMBERS", "VERSION", "Result", "point_arrays"]

KIND, VERSION = "result", 3
NUMBERS = (
    "method", "energy", "bound", "primal", "eta", "work", "sweeps", "seconds", "setup_seconds",
    "threads", "lp_bound", "upper_bound", "tolerances",
)  # fmt: skip
# What to use, and what users of other libraries look for.
_INSTEAD = {
    "labels, or as_dict() with names": "labelling labeling assignment x argmin solution states arg",
    "energy": "cost value fun objective objective_value",
    "bound": "lower_bound lb best_bound dual_bound",
    "status, or gap == 0": "optimal is_optimal proved success",
    "report(path), or print(softmap.verify(result))": "explain certificate summary",
    "seconds": "time runtime elapsed",
    "as_dict()": "to_dict asdict items",
}
ARRAYS = ("labels", "lam", "messages")

Floats = NDArray[np.float64]


@later("lam", "messages")
@dataclass(frozen=True, eq=False)
class Result(Gaps):
    """A labelling, a certified bound, a point of the local polytope, and how they were found.

    Attributes
    ----------
    model, method : the model, and the name of the method
    labels, energy
        The best labelling, in the shape of the grid if the model is one, and its cost
        `energy == model.energy(labels)`. While none was found that obeys the
        hard constraints, `found` is False and the energy +inf: the labels are then no answer.
    bound, proof
        Certified lower bound on the MAP optimum, and what it rests on: the LP relaxation, the
        relaxation tightened by clusters, or an exact search.
    primal, node_marginals, edge_marginals
        A point of the local polytope and its cost, `primal >= LP optimum`.
    lam, lp_bound
        λ and its unsmoothed dual, a bound on the LP optimum; also a warm start.
    messages
        λ where the method stood at the end: the better warm start.
    trace, status, eta
        One row per check; why the run stopped; the inverse temperature it ended with.
    work, sweeps
        Half-edge messages sent, and the same in units of all half-edges.
    seconds, setup_seconds, threads
        Time in the loop, time before it, and threads used.
    tolerances, upper_bound
        The relative `lp_gap` and `gap` that were asked for, and the upper bound that was given.
    penalty
        Costs larger than all others together, which stand for hard constraints, and whether the
        labels avoid them; None if there are none, or if the run did not look. Files do not keep it.
    failures
        The subsolvers that have failed, with the exception that ended each (see
        `softmap.StageWarning`); empty in almost all runs.
    point
        What the marginals are made from; its costs are in units of its own model.
    """

    model: Model
    method: str
    status: Status
    labels: NDArray[np.int64]
    energy: float
    bound: float
    primal: float
    lam: Floats
    eta: float
    trace: Trace
    work: int
    sweeps: float
    seconds: float
    setup_seconds: float
    threads: int
    messages: Floats
    point: PrimalPoint
    lp_bound: float
    proof: Evidence
    tolerances: tuple[float, float] = (1e-4, 1e-6)
    upper_bound: float = math.inf
    penalty: Penalty | None = None
    failures: tuple[StageFailure, ...] = ()

    def __post_init__(self) -> None:
        if self.model is not None and self.model.shape is not None:  # None between processes
            object.__setattr__(self, "labels", self.labels.reshape(self.model.shape))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling, with all lazy attributes computed."""
        return made(self, "lam", "messages")

    def __getitem__(self, variable: Any) -> Any:
        """Return the state of a variable, given by name, number or position in the grid."""
        model = self.model
        if model.names is not None and not isinstance(variable, int | np.integer):
            i = model.names.number(variable)
            return model.names.state(i, self.labels.reshape(-1)[i])
        try:
            labels = self.labels if isinstance(variable, tuple) else self.labels.reshape(-1)
            found = int(labels[variable])
        except Exception as error:  # of any type: the value's conversion methods may raise anything
            raise ModelError(f"there is no variable {shown(variable)}") from error
        return found if model.names is None else model.names.state(int(variable), found)

    def __iter__(self) -> NoReturn:
        raise TypeError("a Result is one object, no tuple: use result.labels and result.energy")

    def as_dict(self) -> dict[Any, Any]:
        """Return the labelling as a mapping from variables to states (by name if named)."""
        if self.model.names is None:
            return dict(enumerate(self.labels.reshape(-1).tolist()))
        return self.model.names.as_dict(self.labels)

    if not TYPE_CHECKING:  # type checkers know the attributes

        def __getattr__(self, name: str) -> Any:
            attributes = (*dir(type(self)), *self.__dataclass_fields__)
            raise AttributeError(missing("'Result' object", name, _INSTEAD, attributes))

    @property
    def found(self) -> bool:
        """Whether `labels` satisfy all hard constraints; if not, the energy is +inf."""
        return math.isfinite(self.energy)

    @property
    def lp_gap(self) -> float:
        """The gap `primal - lp_bound`, at least 0; 0 proves the point optimal for the LP."""
        return max(0.0, self.primal - self.lp_bound)

    @property
    def claimed_gap(self) -> float:
        """The gap that `status` speaks of: of the LP, the upper bound, or else the labelling."""
        if self.status is Status.LP_GAP:
            return self.lp_gap
        if self.status is Status.NONE_BELOW:
            return max(0.0, self.upper_bound - self.bound)
        return self.gap

    @cached_property
    def node_marginals(self) -> Floats:
        """The node marginals of the primal point, flat over `model.node_offset`."""
        return self.point.node_marginals()

    @cached_property
    def edge_marginals(self) -> Floats:
        """The edge marginals of the primal point, flat over `model.edge_offset` (lazy)."""
        return self.point.edge_marginals()

    @cached_property
    def tightened(self) -> RelaxedPoint | None:
        """A point of the tightened relaxation, lazily computed; None if `proof` has no clusters.

        `primal`, `lp_bound` and the marginals belong to the relaxation without clusters.
        """
        network = self.model.network
        labels = network.with_running(self.labels) if self.found else None
        return self.proof.point(network, labels)

    def marginals(self, eta: float) -> SoftMarginals:
        """Return the marginals of the smoothed relaxation at inverse temperature η.

        `node_marginals` and `edge_marginals` belong to a point of the unsmoothed relaxation
        instead, which is usually close to a vertex.

        Parameters
        ----------
        eta : float
            Inverse temperature, in units of 1 / cost.
        """
        from softmap.methods.marginals import smoothed_optimum

        return smoothed_optimum(self.model.network, eta)

    def report(
        self,
        path: str | Path = "softmap-report.html",
        *,
        title: str | None = None,
        picture: ArrayLike | None = None,
        answer: ArrayLike | None = None,
    ) -> Path:
        """Write one self-contained HTML page about this run, and return its path.

        Parameters
        ----------
        path : str or Path
            The file to write. An existing file is replaced.
        title : str, optional
            What was solved, for example the name of a file. The page adds how good the answer is.
            By default the sizes of the model.
        picture : array, optional
            A grey (rows, columns) or colour (rows, columns, 3) image in 0..255, shown beside the
            labelling.
        answer : array, optional
            The image that the labels represent, if the model is not an image itself.
        """
        target = checked_path(path)
        display("page.write")(self, target, title, picture, answer)
        return target

    def plot(self, path: str | Path | None = None) -> Any:
        """Return a matplotlib figure of energy and bound over time, and the labelling of a grid.

        Parameters
        ----------
        path : path, optional
            File to which the figure is written, too.
        """
        target = None if path is None else checked_path(path)
        return display("plotting.result_figure")(self, target)

    def _repr_html_(self) -> str:
        html: str = display("notebook.result_html")(self)
        return html

    def save(self, path: str | Path, *, with_model: bool = True) -> None:
        """Write the result to a NumPy archive, which `softmap.load_result` reads.

        Parameters
        ----------
        path : path
            File to write.
        with_model : bool, default True
            Whether to store the model. Without it the file holds only the model's fingerprint, and
            `load_result` needs the model.
        """
        header = {name: getattr(self, name) for name in NUMBERS}
        header |= {"kind": KIND, "version": VERSION, "status": self.status.name}
        header |= {"model": self.model.fingerprint()}
        if self.failures:
            header |= {"failures": [list(failure) for failure in self.failures]}
        arrays: dict[str, Any] = {name: getattr(self, name).reshape(-1) for name in ARRAYS}
        arrays |= {"trace": self.trace.array()}
        header |= {"stages": self.trace.stages}
        arrays |= {f"point/{name}": array for name, array in point_arrays(self.point).items()}
        arrays |= {f"proof/{name}": array for name, array in evidence_arrays(self.proof).items()}
        if flag("with_model", with_model):
            from softmap.io.npz import model_arrays

            arrays |= {f"model/{name}": a for name, a in model_arrays(self.model.network).items()}
        write_archive(checked_path(path), header | {"digest": digest(header, arrays)}, arrays)

    def __eq__(self, other: object) -> bool:
        """Whether all values, arrays and rows of the trace are equal, and so are the models."""
        if not isinstance(other, Result):
            return NotImplemented
        pairs = [(getattr(self, name), getattr(other, name)) for name in (*NUMBERS, "status")]
        arrays = [(getattr(self, name), getattr(other, name)) for name in ARRAYS]
        same = all(a == b for a, b in pairs) and all(np.array_equal(a, b) for a, b in arrays)
        return (
            same
            and self.trace == other.trace
            and _equal(point_arrays(self.point), point_arrays(other.point))
            and _equal(evidence_arrays(self.proof), evidence_arrays(other.proof))
            and (self.model is other.model or self.model.fingerprint() == other.model.fingerprint())
        )

    def __hash__(self) -> int:
        return hash((self.method, self.status, self.energy, self.bound, self.primal, self.work))

    def __repr__(self) -> str:
        return (
            f"Result(energy={self.energy:.10g}, bound={self.bound:.10g}, "
            f"primal={self.primal:.10g}, status={self.status.name})"
        )


def point_arrays(point: PrimalPoint) -> Arrays:
    """Return a point as arrays by name, without its model."""
    nodes = None if point.nodes is None else point.node_marginals()
    labels = None if point.labels is None else point.model.with_running(point.labels)
    optional = {"nodes": nodes, "labels": labels, "coupling": point.coupling}
    given = {name: array for name, array in optional.items() if array is not None}
    return {"eta": np.asarray(point.eta), **given}


def _equal(a: Arrays, b: Arrays) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)
