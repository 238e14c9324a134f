"""Make all tables, figures and pages about the paper's experiments from the stored run beside this.

    softmap reproduce all --out docs/reproduction           the run
    python -m benchmarks.readings docs/reproduction          the run of the readings
    python docs/reproduction/build.py (make figures-paper)   everything else

The template holds the words; every number comes from the run. Words that numbers could contradict
are listed as premises, and the page is not built when one of them fails.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from string import Template

import readings
from facts import facts

from softmap.app.experiments.reproduce import check_code, publish, stored_evidence, stored_settings
from softmap.app.experiments.samples import Evidence

HERE = Path(__file__).resolve().parent
SETTLED = ("100_smp_printed_settled_100000", "100_smp_proved_settled_100000",
           "100_emp_proved_settled_300000")  # fmt: skip


def broken_premises(found: Mapping[str, str]) -> list[str]:
    """Return what the template says and the run does not."""

    def number(name: str) -> float:
        return float(found[name].replace(",", ""))

    def ratio(name: str) -> float:
        return number(f"number_ratio_{name}")

    premises = {
        "Accel-EMP as printed is level with EMP": number("ratio_size_emp_printed") < 0.03,
        "Accel-BCD as printed is level with BCD": number("ratio_size_bcd_printed") < 0.1,
        "Accel-SMP as printed peaks low": 0 < ratio("max_smp_printed") < 0.1,
        "Accel-SMP as printed falls behind": ratio("min_smp_printed") < -0.5,
        "its bound is better": number("bound_factor_smp_printed") > 1.5,
        "Accel-EMP as proved is behind": ratio("min_emp_proved") < -0.5,
        "Accel-SMP as proved is behind, then ahead": ratio("min_smp_proved")
        < -0.5
        < 0.1
        < ratio("end_smp_proved"),
        "bounds of all proved forms overtake": min(
            number(f"bound_factor_{method}_proved") for method in ("emp", "smp", "bcd")
        )
        > 1,
        "both forms are behind at all sizes for a while": all(
            number(f"size_{n}_{form}_min") < -0.1
            for n in (9, 36, 81)
            for form in ("printed", "proved")
        ),
        "Accel-SMP as proved ends ahead at n = 36 and 81": min(
            number(f"size_{n}_proved_end") for n in (36, 81)
        )
        > 0.5,
        "settled methods are ahead on every graph": min(
            number(f"number_settling_least_{name}") for name in SETTLED
        )
        > 0,
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


def page(folder: Path = HERE, evidence: Evidence | None = None) -> str:
    """Return the page for the run in a folder, which is read unless its evidence is given."""
    evidence = evidence or stored_evidence(folder)
    found = facts(evidence, stored_settings(folder), folder / "manifest.json")
    if broken := broken_premises(found):
        raise SystemExit("template.md no longer fits the run: " + "; ".join(broken))
    template = (HERE / "template.md").read_text(encoding="utf-8")
    return Template(template).substitute(found)


def main() -> None:
    """Write everything beside the run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=HERE)
    folder = parser.parse_args().folder
    check_code(folder)
    publish(folder)
    (folder / "index.md").write_text(page(folder), encoding="utf-8")
    print(folder / "index.md")
    if folder == HERE:
        readings.main()


if __name__ == "__main__":
    main()
