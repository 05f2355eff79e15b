"""Reports: what a detector saw in a stream, as one self-contained HTML page."""

from tocsin._report.gathering import Gathered
from tocsin._report.page import About, page

__all__ = ["About", "Gathered", "page"]
