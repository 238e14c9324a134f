"""LP optima of the instances as certified brackets: `python -m benchmarks.optima [NAME ...]`.

Tries our own solver, then HiPDLP at tightening tolerances, then the interior point and the simplex
method, until the judge certifies a bracket as narrow as asked for; prints the narrowest.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.instances import INSTANCES, SEED
from benchmarks.runner import Limits, best_bracket

METHODS = ("anneal", "highs-hipdlp", "highs-ipm", "highs-simplex")


def main() -> None:
    """Print one line per instance, ready for `instances.OPTIMA`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(INSTANCES))
    parser.add_argument("--time-limit", type=float, default=600.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--gap", type=float, default=1e-7)
    options = parser.parse_args()
    limits = Limits(options.time_limit, options.threads)
    for name in options.names:
        model = INSTANCES[name].build()
        methods = options.methods.split(",")
        bound, primal, method = best_bracket(name, model, methods, options.gap, limits)
        print(f'    "{name}": ({bound:.7f}, {primal:.7f}),  # seed {SEED}, {method}')
        sys.stdout.flush()


if __name__ == "__main__":
    main()
