"""Reports: what a detector saw in a stream, as one self-contained HTML page."""

from tocsin._report.facts import seen_facts
from tocsin._report.gathering import Gathered
from tocsin._report.page import About, page
from tocsin._report.verdict import Verdict, verdict
from tocsin._report.writing import must_be_page, report, write

__all__ = ["About", "Gathered", "Verdict", "must_be_page", "page", "report", "seen_facts", "verdict", "write"]
