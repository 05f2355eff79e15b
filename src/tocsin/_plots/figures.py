"""How figures look: one style on light and on dark pages, colours that all readers can tell apart, PNG and SVG."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal, get_args

from tocsin._common.checks import one_of
from tocsin._common.errors import InputError, MissingExtraError, Option
from tocsin._common.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

File = str | os.PathLike[str]
Theme = Literal["light", "dark"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito (2008)."""

ON_DARK = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#F0E442", "#FFFFFF")
"""Of the same palette, in an order in which the first ones are bright."""

COLUMN, PAGE = 3.4, 7.0
"""Inches: the width of a journal's column, and of its page."""

FORMATS = (".png", ".svg", ".pdf")
"""What a figure can be written to."""

STYLE: dict[str, bool | float | str] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 8.5,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "font.size": 8,
    "grid.alpha": 0.6,
    "grid.color": "#d0d0d0",
    "grid.linewidth": 0.4,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "savefig.dpi": 200,
    "svg.fonttype": "none",
    "svg.hashsalt": "tocsin",
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
}

INK, PAPER = "#e4e6ea", "#15181d"
"""Lines and letters on a dark page, and the page."""

DARK: dict[str, bool | float | str] = {
    "axes.edgecolor": INK,
    "axes.facecolor": PAPER,
    "axes.labelcolor": INK,
    "figure.facecolor": PAPER,
    "grid.color": "#4a505a",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def require_matplotlib() -> ModuleType:
    """matplotlib, if it is installed."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot", "Drawing figures") from error
    return matplotlib


@contextmanager
def style(theme: Theme = "light") -> Iterator[None]:
    """What is drawn in this block looks like Tocsin's own figures; 'dark' is for dark pages and slides."""
    one_of(Option("theme", theme), theme, get_args(Theme))
    matplotlib = require_matplotlib()
    dark = theme == "dark"
    colours = matplotlib.cycler(color=ON_DARK if dark else COLOURS)
    with matplotlib.rc_context(STYLE | (DARK if dark else {}) | {"axes.prop_cycle": colours}):
        yield


def ink() -> str:
    """The colour of letters, in the style that is in use."""
    return str(require_matplotlib().rcParams["text.color"])


@contextmanager
def figure(folder: Path, name: str, width: float, height: float) -> Iterator[Figure]:
    """A figure to draw on (sizes in inches); written to folder/name.png and folder/name.svg at the end of the block."""
    with _drawing(width, height, "light") as drawing:
        yield drawing
        with replacing(folder / f"{name}.png") as file:
            drawing.savefig(file, format="png")
        with replacing(folder / f"{name}.svg") as file:
            drawing.savefig(file, format="svg", metadata={"Date": None})


@contextmanager
def figure_file(file: File, width: float, height: float, theme: Theme = "light") -> Iterator[Figure]:
    """A figure to draw on, written to a file of the kind that its name says (.png, .svg, .pdf)."""
    kind = Path(file).suffix.lower()
    if kind not in FORMATS:
        raise InputError(f"{file}: figures are written to {', '.join(FORMATS)}, by the end of the file's name.")
    with _drawing(width, height, theme) as drawing:
        yield drawing
        with replacing(file) as target:
            drawing.savefig(target, format=kind.removeprefix("."))


@contextmanager
def _drawing(width: float, height: float, theme: Theme) -> Iterator[Figure]:
    with style(theme):  # pyplot is not involved: no windows, no state
        from matplotlib.figure import Figure

        yield Figure(figsize=(width, height))
