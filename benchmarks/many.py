"""What Dask costs beside the solving, per model: alone, and in batches of small models.

`python -m benchmarks.many`: a local cluster of one worker with one thread against `softmap.solve`
in this process, turn and turn about; the difference of wall-clock times, divided by the models.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import typer


def main(alone: int = 20, together: int = 512, turns: int = 5) -> None:
    from distributed import Client, LocalCluster

    import softmap
    from softmap import generators
    from softmap.scale.many import items

    large = [generators.random_grid(12, 12, 3, seed=seed) for seed in range(alone)]
    small = [generators.random_tree(12, 3, seed=seed) for seed in range(together)]
    options: dict[str, Any] = {"goal": "lp", "lp_gap": 1e-3, "threads": 1}
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        list(softmap.solve_many(small[:64], client, **options))  # the worker loads the package
        for name, models, size in (
            ("alone", large, 0),
            ("in batches", small, items.Batching().small),
        ):
            items.Item.batching = items.Batching(
                small=size
            )  # models up to this many bytes travel together
            costs = [_difference(models, client, options) for _ in range(turns)]
            each = [1e3 * cost / len(models) for cost in costs]
            print(f"{name}: {median(each):.2f} ms a model (least {min(each):.2f})")


def _difference(models: list[Any], client: Any, options: dict[str, Any]) -> float:
    import softmap

    fresh = pickle.loads(pickle.dumps(models))  # a graph remembers the plans of earlier runs

    def here() -> None:
        for model in fresh:
            softmap.solve(model, **options)

    def there() -> None:
        for _, answer in softmap.solve_many(models, client, **options):
            assert not isinstance(answer, Exception), answer

    return _seconds(there) - _seconds(here)


def _seconds(call: Callable[[], None]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


if __name__ == "__main__":
    typer.run(main)
