"""Build index.md, the page about the reproduction, from the tables beside it.

    softmap reproduce all --out docs/reproduction
    python docs/reproduction/build.py

The template holds the words; every number comes from the CSV files. Words that numbers could
contradict are listed as premises, and the page is not built when one of them fails.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from string import Template

from facts import facts

from softmap.app.experiments.reproduce import read_tables

HERE = Path(__file__).resolve().parent


def broken_premises(found: Mapping[str, str]) -> list[str]:
    """Return what the template says and the tables do not."""

    def number(name: str) -> float:
        return float(found[name].replace(",", ""))

    premises = {
        "Accel-EMP as printed is level with EMP": number("ratio_size_emp_printed") < 0.03,
        "Accel-BCD as printed is level with BCD": number("ratio_size_bcd_printed") < 0.1,
        "Accel-SMP as printed peaks low": 0 < number("ratio_max_smp_printed") < 0.1,
        "Accel-SMP as printed falls behind": number("ratio_min_smp_printed") < -0.5,
        "its bound is better": number("bound_factor_smp_printed") > 1.5,
        "Accel-EMP as proved is behind": number("ratio_min_emp_proved") < -0.5,
        "Accel-SMP as proved is behind": number("ratio_min_smp_proved") < -0.5,
        "bounds of all proved forms overtake": min(
            number(f"bound_factor_{method}_proved") for method in ("emp", "smp", "bcd")
        )
        > 1,
        "Accel-SMP as printed is ahead and behind at all sizes": all(
            number(f"size_{n}_printed_max") > 0.01 and number(f"size_{n}_printed_min") < -0.01
            for n in (9, 36, 81)
        ),
        "Accel-SMP as proved is never ahead by much": max(
            number(f"size_{n}_proved_max") for n in (9, 36, 81)
        )
        < 0.01,
        "sweep momentum wins at equal work": number("work_gap_momentum_fixed")
        < 0.5 * number("work_gap_smp_standard"),
        "annealing proves more than the best fixed η": number("work_certified_anneal_annealed")
        < number("best_eta_certified_value"),
        "as proved, acceleration wins at η = 100 and loses at 10,000": all(
            sign * number(f"eta_gap_{m}_proved_{eta}")
            < sign * number(f"eta_gap_{m}_standard_{eta}")
            for m in ("emp", "smp")
            for sign, eta in ((1, 100), (-1, 10000))
        ),
        "accelerated updates are not dearer": number("microseconds_smp_proved")
        < 1.1 * number("microseconds_smp_standard"),
    }
    return [words for words, true in premises.items() if not true]


def page(folder: Path = HERE) -> str:
    """Return the page for the tables in a folder."""
    found = facts(read_tables(folder))
    if broken := broken_premises(found):
        raise SystemExit("template.md no longer fits the tables: " + "; ".join(broken))
    template = (HERE / "template.md").read_text(encoding="utf-8")
    return Template(template).substitute(found)


def main() -> None:
    """Write the page beside the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=HERE)
    folder = parser.parse_args().folder
    (folder / "index.md").write_text(page(folder), encoding="utf-8")
    print(folder / "index.md")


if __name__ == "__main__":
    main()
