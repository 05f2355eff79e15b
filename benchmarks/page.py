"""Rebuild docs/results/paper.md from the committed tables: draw every figure again and put the texts in their places.

python -m benchmarks.page

In the page, what stands between <!-- NAME --> and <!-- end --> is what `tocsin reproduce NAME --draw-only` says.
"""

from __future__ import annotations

import re
from pathlib import Path

from tocsin.experiments.catalogue import EXPERIMENTS
from tocsin.experiments.laboratory import Laboratory

PAGE = Path(__file__).parent.parent / "docs" / "results" / "paper.md"
RESULTS = PAGE.with_suffix("")


def main() -> None:
    """Rewrite the page."""
    laboratory = Laboratory(RESULTS)
    print(f"{PAGE.name}: {', '.join(EXPERIMENTS)}")
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), laboratory), encoding="utf-8")


def filled(page: str, laboratory: Laboratory) -> str:
    """The page with its places filled."""

    def fill(place: re.Match[str]) -> str:
        name = place["name"]
        if not all((RESULTS / f"{table}.csv").exists() for table in EXPERIMENTS[name].tables):
            print(f"{name}: no table, left as it is")
            return place[0]
        text = laboratory.draw(name, EXPERIMENTS[name])
        body = re.sub(r"\A#+ .*\n+", "", text).strip()
        body = re.sub(r"(!\[[^]]*\]\()", rf"\1{RESULTS.name}/", body)
        return f"<!-- {name} -->\n\n{body}\n\n<!-- end -->"

    return re.sub(r"<!-- (?P<name>[a-z0-9-]+) -->\n.*?<!-- end -->", fill, page, flags=re.DOTALL)


if __name__ == "__main__":
    main()
