"""Reports: what a detector saw in a stream, as one self-contained HTML page."""

from tocsin.report.gathering import Gathered
from tocsin.report.page import About, page

__all__ = ["About", "Gathered", "page"]
