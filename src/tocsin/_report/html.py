"""HTML as nested calls. What is not `Markup` is text, and escaped: data cannot become part of the page's structure."""

from __future__ import annotations

import json
import re
from html import escape

VOID = {"meta", "link", "br", "line", "rect", "circle", "path", "polygon", "polyline"}
"""Elements without content."""

NOT_ALLOWED = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\x7f-\x9f]")
"""Characters that a page must not hold, such as NUL and halves of characters."""


class Markup(str):
    """A piece of HTML, as opposed to text."""


def tag(name: str, /, *content: object, **attributes: object) -> Markup:
    """An element. Attributes that are None are left out; `class_` is class, and `_` in other names is `-`.

    >>> print(tag("p", "1 < 2 ", tag("b", "always"), class_="note"))
    <p class="note">1 &lt; 2 <b>always</b></p>
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID:
        return Markup(f"<{name}{given}>" if name in ("meta", "link", "br") else f"<{name}{given}/>")
    return Markup(f"<{name}{given}>{join(*content)}</{name}>")


def join(*content: object) -> Markup:
    """Pieces one after the other; None is nothing."""
    return Markup("".join(text(piece) for piece in content if piece is not None))


def text(piece: object) -> Markup:
    """Escaped, unless it is markup."""
    return piece if isinstance(piece, Markup) else Markup(escape(NOT_ALLOWED.sub("\ufffd", str(piece))))


def data(identifier: str, content: object) -> Markup:
    """Data for scripts, which browsers never run."""
    written = json.dumps(content, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return Markup(f'<script type="application/json" id="{text(identifier)}">{written}</script>')


def table(head: list[object], rows: list[list[object]], class_: str | None = None) -> Markup:
    """A table that scrolls sideways where it is too wide for the page. Cells may be `td` elements of their own."""
    return tag(
        "div",
        tag(
            "table",
            tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in head))) if head else None,
            tag("tbody", *(tag("tr", *map(_cell, row)) for row in rows)),
            class_=class_,
        ),
        class_="scroll",
    )


def _cell(content: object) -> Markup:
    if isinstance(content, Markup) and content.startswith(("<td", "<th")):
        return content
    return tag("td", content)
