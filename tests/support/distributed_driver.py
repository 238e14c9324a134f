"""Run under mpiexec by distributed/test_mpi.py.

cases FOLDER        solve the cases on 1, 2, 4 and 8 processes; what each group finds as JSON
folder MODEL OUT    solve the model in parts in a folder, with as many checkpoints as possible,
                    again and again until killed
"""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from mpi4py import MPI

from softmap import InfeasibleModel, Model, distributed, generators
from support.whole_runs import labels_of, lam_of, numbers

OPTIONS = {"threads": 1, "lp_gap": 0.0, "gap": 0.0}
PASSES = 11  # of the cases
PARTS = 7  # fewer than the largest group, and not a multiple of the others
CASES = {
    "grid": lambda: generators.random_grid(8, 9, 3, seed=1),
    "random graph": lambda: generators.erdos_renyi(24, 3, seed=2),
    "constrained": lambda: generators.ragged_constrained(20, max_labels=4, seed=2),
}
GROUPS = (4, 4, 4, 4, 2, 2, 1, 0)  # of the eight processes: sizes of groups that work side by side


def infeasible() -> Model:
    """A chain of variables that must and must not be equal, over many parts."""
    inf = float("inf")
    same = [[[0.0, inf], [inf, 0.0]]] * 19
    unary = [[0.0, inf]] + [[0.0, 0.0]] * 18 + [[inf, 0.0]]
    grid = Model(unary, [[i, i + 1] for i in range(19)], same)
    return grid.with_shape((1, 20))


def solve_cases(world, folder: str) -> None:
    size = GROUPS[world.rank]
    group = world.Split(size, world.rank)
    if size:
        solve_group(group, Path(folder))
    world.Barrier()
    solve_group(world, Path(folder))


def solve_group(comm, folder: Path) -> None:
    found = {}
    for name, make in CASES.items():
        model = make()
        source = model if model.shape else folder / name  # the one in memory, the other in parts
        parts = PARTS if model.shape else None
        result = distributed.solve(source, comm, parts=parts, max_passes=PASSES, **OPTIONS)
        gather(comm, name, model, result, found)
    try:
        distributed.solve(infeasible(), comm, parts=PARTS)
    except InfeasibleModel as error:
        found["infeasible"] = error.variable
    if comm.rank == 0:
        (folder / f"found-{comm.size}.json").write_text(json.dumps(found))


def gather(comm, name: str, model: Model, result, found: dict) -> None:
    """What all processes have found, put together by the first."""
    pieces = comm.gather((result.labels, result.lam), root=0)
    sent = comm.gather(result.halo_bytes, root=0)
    if comm.rank == 0:
        labels = labels_of(model, [labels for labels, _ in pieces])
        lam = lam_of(model, [lam for _, lam in pieces])
        found[name] = [numbers(result), labels.tolist(), lam.tolist(), sum(sent)]


def solve_folder(comm, model: str, out: str) -> None:
    if comm.rank == 0:
        Path(out).mkdir(exist_ok=True)
    comm.Barrier()
    (Path(out) / f"pid-{comm.rank}").write_text(str(os.getpid()))
    comm.Barrier()
    checkpoint = Path(out) / "run"
    options = OPTIONS | {"max_passes": 100_000, "checkpoint_every": 0.0}
    for _ in range(100):  # in case nobody kills it
        distributed.solve(model, comm, checkpoint=checkpoint, **options)


if __name__ == "__main__":
    task = {"cases": solve_cases, "folder": solve_folder}[sys.argv[1]]
    task(MPI.COMM_WORLD, *sys.argv[2:])
