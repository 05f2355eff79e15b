"""Rebuild pages of docs/results from the committed tables: draw every figure again and put the texts in their places.

python -m benchmarks.page

In the page, what stands between <!-- NAME --> and <!-- end --> is what `tocsin reproduce NAME --draw-only` says; for
NAME peer, what benchmarks.peer_streams has found.
"""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks import peer_streams
from tocsin._experiments.catalogue import EXPERIMENTS
from tocsin._experiments.laboratory import Laboratory, read_table

RESULTS = Path(__file__).parent.parent / "docs" / "results"
PAGES = ("contexts", "paper", "power", "promise", "streams")


def main() -> None:
    """Rewrite the pages."""
    for name in PAGES:
        page = RESULTS / f"{name}.md"
        print(page.name)
        page.write_text(filled(page.read_text(encoding="utf-8"), RESULTS / name), encoding="utf-8")


def filled(page: str, folder: Path) -> str:
    """The page with its places filled from the tables in a folder."""
    laboratory = Laboratory(folder)

    def fill(place: re.Match[str]) -> str:
        name = place["name"]
        tables = ("peer", "streams") if name == "peer" else EXPERIMENTS[name].tables
        if not all((folder / f"{table}.csv").exists() for table in tables):
            print(f"{name}: no table, left as it is")
            return place[0]
        if name == "peer":
            told = peer_streams.told(*(read_table(folder / f"{table}.csv") for table in tables))
            return f"<!-- peer -->\n\n{told}\n\n<!-- end -->"
        text = laboratory.draw(name, EXPERIMENTS[name])
        body = re.sub(r"\A#+ .*\n+", "", text).strip()
        body = re.sub(r"(!\[[^]]*\]\()", rf"\1{folder.name}/", body)
        return f"<!-- {name} -->\n\n{body}\n\n<!-- end -->"

    return re.sub(r"<!-- (?P<name>[a-z0-9-]+) -->\n.*?<!-- end -->", fill, page, flags=re.DOTALL)


if __name__ == "__main__":
    main()
