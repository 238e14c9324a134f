"""What files keep of a run, read again: results, and the traces, points and evidence in them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError, OptionError
from softmap.io.npz import model_from_arrays
from softmap.io.store import Arrays, checked_path, digest, read_archive, under
from softmap.model import Model, Network, checked_model, has_fingerprint
from softmap.relaxation.consistency import tighten
from softmap.relaxation.gaps import scaled
from softmap.relaxation.polytope import PrimalPoint
from softmap.run.evidence import Evidence, Relaxation, Stated
from softmap.run.failures import StageFailure
from softmap.run.result import KIND, NUMBERS, VERSION, Result
from softmap.run.trace import Status, Trace
from softmap.subsolvers import registry

__all__ = [
    "evidence_from_arrays", "load_result", "point_from_arrays", "stored_digest", "trace_from_array",
]  # fmt: skip

COUNTS = ("work", "threads")


def load_result(path: str | Path, model: Model | None = None) -> Result:
    """Read a result that `Result.save` wrote.

    Parameters
    ----------
    path : path
        The file.
    model : Model, optional
        The model of the result, which is compared with the fingerprint in the file. It is needed if
        the result was saved without its model.

    Returns
    -------
    Result

    Examples
    --------
    >>> import softmap
    >>> result = softmap.solve(softmap.generators.random_tree(20, seed=1))
    >>> folder = getfixture("tmp_path")
    >>> result.save(folder / "result.npz")
    >>> softmap.load_result(folder / "result.npz") == result
    True
    """

    def problem(sentence: str) -> FormatError:
        return FormatError(sentence, path)

    header, arrays = read_archive(checked_path(path), KIND, VERSION, problem)
    stored = under("model", arrays)
    if model is None and not stored:
        raise problem("saved without its model: call load_result(path, model)")
    try:
        given = model_from_arrays(stored, path) if model is None else checked_model(model)
        if not has_fingerprint(given, header["model"]):
            raise problem("this result belongs to another model")
        return _restored(given, header, arrays)
    except (FormatError, OptionError):
        raise
    except Exception as error:  # of any type: the file may be damaged in many ways
        raise problem(f"the result is damaged ({error})") from error


def _restored(model: Model, header: dict[str, Any], arrays: Arrays) -> Result:
    """Return the result of a header and arrays, after the necessary checks."""
    header = {"upper_bound": math.inf} | header  # older files have none
    parts: dict[str, Any] = {name: _number(name, header[name]) for name in NUMBERS[1:-1]}
    lp_gap, gap = (float(value) for value in header["tolerances"])
    size = model.network.half_size
    result = Result(
        model=model,
        method=str(header["method"]),
        status=Status[header["status"]],
        labels=_sized("labels", arrays["labels"], model.n, "i"),
        lam=_sized("lam", arrays["lam"], size, "f"),
        messages=_sized("messages", arrays["messages"], size, "f"),
        trace=trace_from_array(arrays["trace"], header.get("stages")),
        point=point_from_arrays(model.network, under("point", arrays)),
        proof=evidence_from_arrays(under("proof", arrays), parts["bound"]),
        tolerances=(lp_gap, gap),
        failures=tuple(
            StageFailure(str(stage), str(error)) for stage, error in header.get("failures", [])
        ),
        **parts,
    )
    _check_labels(model.network, result.labels.reshape(-1))
    return result


def _number(name: str, value: Any) -> Any:
    """Return a number of a header; counts must be integers of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is not a number")
    if name in COUNTS and (not isinstance(value, int) or value < 0):
        raise ValueError(f"{name} is not a count")
    return value


def _sized(name: str, array: NDArray[Any], size: int, kind: str) -> NDArray[Any]:
    if array.shape != (size,) or array.dtype.kind != kind or array.dtype.itemsize != 8:
        raise ValueError(f"{name}: expected {size} numbers, found {array.dtype}{array.shape}")
    return array


def _check_labels(model: Network, labels: NDArray[np.int64]) -> None:
    if (labels < 0).any() or (labels >= model.num_labels[: len(labels)]).any():
        raise ValueError("a label is out of its range")


def stored_digest(path: str | Path) -> tuple[str | None, str]:
    """Return the digest stored in a file, and the digest of its current content."""

    def problem(sentence: str) -> FormatError:
        return FormatError(sentence, path)

    header, arrays = read_archive(Path(path), KIND, VERSION, problem)
    return header.pop("digest", None), digest(header, arrays)


def point_from_arrays(model: Network, arrays: Arrays) -> PrimalPoint:
    """Return the point of the arrays of `point_arrays`."""
    tight = tighten(scaled(model).model)
    sizes = {"nodes": tight.unary.size, "coupling": tight.half_size}
    parts: dict[str, Any] = {
        name: _sized(f"point/{name}", arrays[name], size, "f")
        for name, size in sizes.items()
        if name in arrays
    }
    if "labels" in arrays:
        parts["labels"] = _sized("point/labels", arrays["labels"], model.num_variables, "i")
        _check_labels(model, parts["labels"])
    elif "nodes" not in arrays:
        raise ValueError("a point needs node marginals or labels")
    return PrimalPoint(tight, eta=float(arrays["eta"]), **parts)


def trace_from_array(array: NDArray[np.float64], stages: Any) -> Trace:
    """Return the trace of a file.

    Parameters
    ----------
    array : float64 array
        Its rows, as `Trace.array` returns them.
    stages : list of str or None
        The names of the subsolvers, as `Trace.stages`; None in files of earlier versions, which
        numbered the subsolvers.
    """
    if stages is None:
        numbered = registry.numbered()
        stages = [numbered.get(k, "") for k in range(max(numbered, default=-1) + 1)]
    if not isinstance(stages, list) or not all(isinstance(name, str) for name in stages):
        raise ValueError("the names of the subsolvers are none")
    return Trace.from_array(array, stages)


def evidence_from_arrays(arrays: Arrays, value: float) -> Evidence:
    """Return the evidence of the arrays of `evidence_arrays`.

    Parameters
    ----------
    arrays : dict
        The arrays.
    value : float
        The bound.
    """
    kind = str(arrays["kind"])
    if "text" in arrays:
        words: dict[str, Any] = {
            name: str(arrays[name]) for name in ("text", "parts") if name in arrays
        }
        start = under("start", arrays)
        weaker = evidence_from_arrays(start, float(start["value"])) if start else None
        return Stated(value=value, kind=kind, nodes=int(arrays["nodes"]), start=weaker, **words)
    if kind == Relaxation.kind:
        return Relaxation(value=value)
    found = registry.evidence(kind)
    if found is None:
        raise ValueError("the kind of the proof is unknown")
    return found.of_arrays(arrays, value)
