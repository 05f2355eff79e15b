"""How figures look: one style, colours that all readers can tell apart, PNG and SVG."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tocsin.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito (2008)."""

COLUMN, PAGE = 3.4, 7.0
"""Inches: the width of a journal's column, and of its page."""

STYLE: dict[Any, Any] = {
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


def require_matplotlib() -> Any:
    """matplotlib, if it is installed."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot", "Drawing figures") from error
    return matplotlib


@contextmanager
def figure(folder: Path, name: str, width: float, height: float) -> Iterator[Figure]:
    """A figure to draw on (sizes in inches); written to folder/name.png and folder/name.svg at the end of the block."""
    with _drawing(width, height) as drawing:
        yield drawing
        drawing.savefig(folder / f"{name}.png")
        drawing.savefig(folder / f"{name}.svg", metadata={"Date": None})


@contextmanager
def figure_file(file: Path, width: float, height: float) -> Iterator[Figure]:
    """A figure to draw on, written to a file of the kind that its name says (.png, .svg, .pdf)."""
    with _drawing(width, height) as drawing:
        yield drawing
        drawing.savefig(file)


@contextmanager
def _drawing(width: float, height: float) -> Iterator[Figure]:
    matplotlib = require_matplotlib()
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):  # pyplot is not involved: no windows, no state
        yield Figure(figsize=(width, height))
