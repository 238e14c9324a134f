"""Check the links of the built pages: `python docs/check_links.py docs/_build/html`.

Links within the pages must lead to a file and, where they name one, to an anchor in it. Links to
the outside are tried only where there is a network, and fail only if the other side says that
nothing is there.
"""

import socket
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

GONE = (404, 410)
SECONDS = 10.0


class Page(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            if name in ("id", "name") and value:
                self.anchors.add(value)


def broken_inside(root: Path, pages: dict[Path, Page]) -> list[str]:
    """Links between the pages that lead nowhere."""
    found = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            missing = not target.is_file()
            anchor = unquote(parts.fragment)
            if missing or (anchor and target in pages and anchor not in pages[target].anchors):
                found.append(f"{path.relative_to(root)}: {link}")
    return found


def broken_outside(links: set[str]) -> list[str]:
    """Links to other sites that are gone; nothing without a network."""
    hosts = {urlsplit(link).hostname or "" for link in links}
    if not any(map(reachable, hosts)):
        print(f"no network: {len(links)} links to other sites were not tried")
        return []
    return [link for link in sorted(links) if is_gone(link)]


def reachable(host: str) -> bool:
    """Whether a site answers at all."""
    try:
        socket.create_connection((host, 443), timeout=SECONDS).close()
    except OSError:
        return False
    return True


def is_gone(link: str) -> bool:
    """Whether a site says that there is nothing at this address."""
    request = Request(link, headers={"User-Agent": "softmap-docs"})
    try:
        urlopen(request, timeout=SECONDS).close()
    except HTTPError as error:
        return error.code in GONE
    except (URLError, OSError):
        return False
    return False


def main(folder: str) -> int:
    """Print what is broken; the exit code says whether anything is."""
    root = Path(folder).resolve()
    pages = {path: Page(path) for path in sorted(root.rglob("*.html"))}
    outside = {
        link for page in pages.values() for link in page.links if urlsplit(link).scheme == "https"
    }
    broken = broken_inside(root, pages) + broken_outside(outside)
    for line in broken:
        print(f"broken link: {line}", file=sys.stderr)
    print(f"{len(pages)} pages, {len(outside)} links to other sites, {len(broken)} broken links")
    return 1 if broken or not pages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
