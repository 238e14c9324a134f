"""Build index.md, the page about the reproduction, from the tables beside it.

    softmap reproduce all --out docs/reproduction
    python docs/reproduction/build.py

The template holds the words; every number comes from the CSV files.
"""

import argparse
from pathlib import Path
from string import Template

from softmap.experiments.facts import facts
from softmap.experiments.reproduce import read_tables

HERE = Path(__file__).resolve().parent


def page(folder: Path = HERE) -> str:
    """Return the page for the tables in a folder."""
    template = (HERE / "template.md").read_text(encoding="utf-8")
    return Template(template).substitute(facts(read_tables(folder)))


def main() -> None:
    """Write the page beside the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=HERE)
    folder = parser.parse_args().folder
    (folder / "index.md").write_text(page(folder), encoding="utf-8")
    print(folder / "index.md")


if __name__ == "__main__":
    main()
