"""The table of decisions is complete: every number that is mentioned leads to a section.

Comments refer to a decision by its number ("decision 67", "D12"). `docs/decisions/index.md` says
where it is.
"""

import re
from pathlib import Path

import pytest

from support.data import ROOT

FOLDER = ROOT / "docs" / "decisions"
INDEX = (FOLDER / "index.md").read_text("utf-8")
ROW = re.compile(
    r"^\| \[(\d+)\]\((\S+?)\) \| \[(.+?)\]\((\S+?)\) \| \[.+?\]\((\S+?)\) \| (.+) \|$", re.M
)
ROWS = {int(row[0]): row[1:] for row in ROW.findall(INDEX)}
SECTION = re.compile(r"^## (\d+)\. (.+)$", re.M)
PAGES = sorted(set(FOLDER.glob("*.md")) - {FOLDER / "index.md", FOLDER / "measurements.md"})

# Where numbers are mentioned: sources and pages, but the decisions, whose links are tested below.
FOLDERS = ("src", "docs", "benchmarks", "tests", "tools", "theorems", ".github")
ENDINGS = {".py", ".hpp", ".cpp", ".cu", ".md", ".rst", ".v", ".ml", ".toml", ".yml", ".js"}
WORDS = re.compile(r"\b[Dd]ecisions? ((?:\[?0*\d+(?:\]\([^)]*\))?(?:, | and |, and )?)+)")
SHORT = re.compile(r"#.*?[;(] ?(D\d+(?:, D\d+)*)|\| (D\d+(?:, D\d+)*)(?=[ ,;|])")
LINK = re.compile(r"decisions/([\w-]+\.md)(?:#([^)\s\"'`]*))?")


def anchor(title: str) -> str:
    """Return the anchor of a heading, as GitHub and the pages make it."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def texts() -> list[tuple[Path, str]]:
    """Return the files that may mention a decision, with their texts."""
    paths = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile")]
    for folder in FOLDERS:
        paths += (path for path in (ROOT / folder).rglob("*") if path.suffix in ENDINGS)
    built = (ROOT / "docs" / "_build", ROOT / "docs" / "gallery")
    return [
        (path, path.read_text("utf-8"))
        for path in sorted(paths)
        if path != Path(__file__) and not any(folder in path.parents for folder in built)
    ]


def mentioned(text: str) -> set[int]:
    """Return the numbers of decisions that a text refers to."""
    places = [re.sub(r"\]\([^)]*\)", "", numbers) for numbers in WORDS.findall(text)]
    places += [first or second for first, second in SHORT.findall(text)]
    return {int(number) for place in places for number in re.findall(r"\d+", place)}


def test_mentions_are_recognised():
    assert mentioned("as decided (decision 67), decisions [74](a.md#74-x) and [99](b.md)") == {
        67,
        74,
        99,
    }
    assert mentioned("first = 1  # first η; D7, D12\n| 8 | nodes | D39, D45 |") == {7, 12, 39, 45}


def test_the_table_has_each_section_once_and_in_order():
    assert list(ROWS) == sorted(ROWS)
    assert len(ROW.findall(INDEX)) == len(ROWS) == len(re.findall(r"^\| \[\d+\]", INDEX, re.M))
    sections = [
        (int(number), f"{page.name}#{anchor(f'{number}. {title}')}", title)
        for page in PAGES
        for number, title in SECTION.findall(page.read_text("utf-8"))
    ]
    rows = [(number, target, title) for number, (target, title, *_) in ROWS.items()]
    assert sorted(sections) == rows
    for target, _, again, page, _ in ROWS.values():
        assert target == again
        assert target.startswith(f"{page}#")


def test_a_decision_that_is_superseded_names_the_one_that_is_in_force():
    for number, (*_, state) in ROWS.items():
        assert state.startswith(("in force", "superseded by [", "removed by [", "built by [")), (
            f"decision {number}: {state}"
        )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_of_decisions_is_listed_and_begins_with_what_holds_today(page):
    text = page.read_text("utf-8")
    assert re.search(rf"^{page.stem}$", INDEX, re.M), "it is not in the list of pages"
    opening = text.split("\n## ")[0].split("\n", 1)[1]
    assert len(opening.split()) >= 10, "it has no introduction"


def test_every_number_that_is_mentioned_is_in_the_table():
    unknown = {
        f"{path.relative_to(ROOT)}: decision {number}"
        for path, text in texts()
        for number in mentioned(text) - set(ROWS)
    }
    assert not unknown


def test_links_to_decisions_lead_to_sections():
    anchors = {
        page.name: {
            anchor(title) for title in re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.M)
        }
        for page in FOLDER.glob("*.md")
    }
    broken = [
        f"{path.relative_to(ROOT)}: {page}#{target}"
        for path, text in texts()
        for page, target in LINK.findall(text)
        if page not in anchors or (target and target not in anchors[page])
    ]
    for page in FOLDER.glob("*.md"):
        for name, target in re.findall(r"\]\(([\w-]+\.md)?#([^)]*)\)", page.read_text("utf-8")):
            if target not in anchors.get(name or page.name, ()):
                broken.append(f"{page.name}: {name}#{target}")
    assert not broken


def test_the_next_number_is_free():
    (number,) = re.findall(r"takes the next number, (\d+)", INDEX)
    assert int(number) == max(ROWS) + 1
