"""The numbers that steer the semidefinite bound with triangles."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SpinSteps"]


@dataclass(frozen=True)
class SpinSteps:
    """The numbers of the triangle bound; the comment of each says its unit and origin (D69)."""

    penalty: float = 0.2  # first penalty of a violated triangle, in mean entries of the matrix
    halved: int = 200  # steps after which the penalty is half of it, a third, ...
    keep: float = 0.99  # weight of earlier multipliers in their average, per step
    steps: int = 20  # steps between two separations
    added: int = 10  # most new triangles per spin and separation
    violated: float = 0.02  # least violation of a new triangle
    sweeps: int = 30  # sweeps for the diagonal of a bound
    rounds: int = 4  # separations between two bounds
    first: int = 16  # separations before the first bound of the root: it gains nothing earlier
    least: int = 2  # bounds of a node before it is branched on
    hope: int = 8  # bounds that may pass, at the last gain, until a node is closed
