"""The numbers of semidefinite bounds."""

from __future__ import annotations

from dataclasses import dataclass

from softmap.tuning import Numbers

__all__ = ["SpinNumbers", "SpinSteps", "SquareSteps"]


@dataclass(frozen=True)
class SpinNumbers(Numbers):
    """Which models have a semidefinite bound, and when it is computed."""

    degree: float = 6.0  # mean degree above which it is computed; D69
    variables: int = 3_000  # most variables; D69
    indicators: int = 1_000  # most possible labels but one per variable, for more than two; D92
    triangles: int = 600  # most variables with triangles and branching; D69
    import_seconds: float = 0.4  # s, import of scipy, which counts as set-up; D69, D107
    import_limit: float = 2.0  # s, least time limit of a run that imports scipy; D69, D107
    setup: float = 60.0  # evaluations of the bound: other set-up; D51
    second: int = 20  # passes before the second slice; D69
    progress: float = 0.002  # least gain of a bound without triangles, in gaps, for another; D35
    spin_sweeps: int = 200  # sweeps before a bound of two labels without triangles; D69
    square_steps: int = 10  # steps before a bound of more labels; D92
    pair_bytes: int = 120  # bytes per pair of variables: 15 matrices of doubles; D69


@dataclass(frozen=True)
class SpinSteps(Numbers):
    """The bound of two labels with triangles, and branch and bound with it."""

    penalty: float = 0.2  # first penalty of a violated triangle, in mean entries of the matrix; D69
    halved: int = 200  # steps until the first penalty has halved; D69
    average: int = 100  # steps over which multipliers are averaged; D69
    steps: int = 20  # steps between two separations; D69
    added: int = 10  # most new triangles per spin and separation; D69
    violated: float = 0.02  # least violation of a new triangle; D69
    sweeps: int = 30  # sweeps for the diagonal of a bound; D69
    first_rounds: int = 16  # separations before the first bound; D69
    rounds: int = 4  # separations between two later bounds; D69
    least: int = 2  # bounds of a node before a branching; D69
    hopeful: int = 8  # bounds of this gain that would close a node that is not branched yet; D69
    tries: int = 32  # labellings that vectors are rounded to; D69
    flipped: int = 4  # best of these labellings that are improved by single flips; D69
    lanczos: int = 40  # steps between two estimates of an eigenvalue; D69
    longest_lanczos: int = 400  # most steps of such an estimate; D69


@dataclass(frozen=True)
class SquareSteps(Numbers):
    """The bound of more labels, by alternating directions."""

    penalty: float = 50.0  # first penalty, in mean sizes of a cost; D92
    proving: int = 3  # duration of a step with a bound, in steps without one; D92
    balanced: float = 1.5  # factor of the penalty if one matrix moves twice as much; D83
    rows: int = 32  # rows of a matrix from which labels are rounded; D83
