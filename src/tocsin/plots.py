"""Plots of detectors. Needs the extra `plot`.

`draw_...` functions write a file (.png, .svg, .pdf) in Tocsin's own style, for light or dark pages. `..._panel`
functions draw on axes of yours, in the style that is in use; `with style("dark"):` is Tocsin's.
"""

from tocsin._plots.comparison import comparison_panel, draw_comparison
from tocsin._plots.explanation import contributions_panel, draw_explanation, onset_panel
from tocsin._plots.figures import style
from tocsin._plots.path import draw_path, path_panel
from tocsin._plots.power import draw_power, power_panel
from tocsin._plots.promise import draw_promise, rarity_panel, run_length_panel

__all__ = [
    "comparison_panel",
    "contributions_panel",
    "draw_comparison",
    "draw_explanation",
    "draw_path",
    "draw_power",
    "draw_promise",
    "onset_panel",
    "path_panel",
    "power_panel",
    "rarity_panel",
    "run_length_panel",
    "style",
]
