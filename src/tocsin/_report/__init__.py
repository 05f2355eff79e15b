"""Reports: what a detector saw in a stream, as one self-contained HTML page."""

from tocsin._report.gathering import Gathered
from tocsin._report.page import About, page
from tocsin._report.writing import must_be_page, report, write

__all__ = ["About", "Gathered", "must_be_page", "page", "report", "write"]
