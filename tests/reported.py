"""A report to look at: its data, and how to read its page."""

from __future__ import annotations

import base64
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner, Result

from tocsin import Detector
from tocsin._cli import app
from tocsin._data.tables import Table, as_table

ERT = 2000
EVIL = "<script>alert(1)</script>"
VOID = {"meta", "link", "br"}
SELF_CLOSED = {"line", "rect", "circle", "path", "polygon", "polyline"}


def rows(count: int, shift: float, seed: int) -> list[dict[str, Any]]:
    """Rows with columns of several kinds, and with names and words that are HTML."""
    rng = np.random.default_rng(seed)
    return [
        {
            "flow": float(rng.normal(shift)),
            f"{EVIL}&\"'": str(rng.choice(["</td>", "<b>", "plain"])),
            "gaps": None if rng.random() < 0.2 else float(rng.normal(10)),
            "still": 1.5,
        }
        for _ in range(count)
    ]


REFERENCE, STREAM = rows(400, 0, 0), rows(500, 0, 1) + rows(100, 2.5, 2) + rows(200, 0, 3)


def json_lines(records: list[dict[str, Any]]) -> str:
    """As JSON lines."""
    return "".join(json.dumps(record) + "\n" for record in records)


def table(records: list[dict[str, Any]]) -> Table:
    """As a table."""
    found = as_table(records)
    assert found is not None
    return found


def tocsin(*arguments: object, stdin: str | None = None) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


class Page(HTMLParser):
    """What a page holds; fails where elements are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in SELF_CLOSED
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        if inside == "script":
            self.scripts.append(data)
        elif inside != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag == name]


def reported(folder: Path) -> Path:
    """A detector, a stream that changes, and the report in a folder."""
    Detector(ERT, window=[5, 20], paths=500, seed=1).fit(REFERENCE, progress=False).save(folder / "pump.tocsin")
    (folder / "stream.jsonl").write_text(json_lines(STREAM))
    title = f"{EVIL} & more"
    result = tocsin(
        "report", folder / "pump.tocsin", folder / "stream.jsonl", "-o", folder / "r.html", "--title", title
    )
    assert result.exit_code == 1, result.output
    return folder


def embedded(page: Page) -> dict[str, Any]:
    """The path's data."""
    found: dict[str, Any] = json.loads(page.scripts[0])
    return found


def unpacked(packed: str) -> Any:
    """An array."""
    return np.frombuffer(base64.b64decode(packed), dtype="<f4")
