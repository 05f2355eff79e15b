"""What pages and tests point at is in the repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
SOURCES = [*ROOT.glob("tests/*.py"), *ROOT.glob("src/**/*.py"), *ROOT.glob("benchmarks/*.py")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """To files that are there, and to sections that they have."""
    text = page.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith(("http:", "https:")):
            continue
        name, _, section = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        if section:
            titles = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert section in [_anchor(title) for title in titles], link


def _anchor(title: str) -> str:
    """As GitHub makes it of a title."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_pages_that_code_cites_are_there(file: Path) -> None:
    """By a path from the root, or by the name of a page."""
    cited = set(re.findall(r"[\w\-/]+\.md\b", "\n".join(_texts(file))))
    known = {str(page.relative_to(ROOT)) for page in PAGES} | {page.name for page in PAGES}
    assert cited <= known


def _texts(file: Path) -> list[str]:
    """Its docstrings and comments."""
    text = file.read_text(encoding="utf-8")
    return [*re.findall(r'"""(.*?)"""', text, re.DOTALL), *re.findall(r"#.*$", text, re.MULTILINE)]
