"""Everything that `tocsin reproduce` knows, by name."""

from __future__ import annotations

from tocsin._experiments.base import Experiment
from tocsin._experiments.comparison_figures import CALIBRATION, POWER, QQ
from tocsin._experiments.contexts import CONTEXTS
from tocsin._experiments.explanations import EXPLANATIONS
from tocsin._experiments.figure1 import FIGURE1
from tocsin._experiments.imaging import IMAGING
from tocsin._experiments.intervals import INTERVALS
from tocsin._experiments.memories import MEMORIES
from tocsin._experiments.power_card import POWER_CARD
from tocsin._experiments.problems import PROBLEMS_FIGURE
from tocsin._experiments.rare import RARE
from tocsin._experiments.simulated_streams import SIMULATED_STREAMS
from tocsin._experiments.streams import STREAMS
from tocsin._experiments.table1 import TABLE1
from tocsin._experiments.window_sharing import WINDOW_SHARING

PAPER: dict[str, Experiment] = {
    "table1": TABLE1,
    "figure1": FIGURE1,
    "calibration": CALIBRATION,
    "qq": QQ,
    "power": POWER,
    "window-sharing": WINDOW_SHARING,
    "problems": PROBLEMS_FIGURE,
    "imaging": IMAGING,
}
"""The paper, redone."""

PROMISE: dict[str, Experiment] = {"intervals": INTERVALS, "memories": MEMORIES, "rare": RARE}
"""The promise for one reference set, for streams with a memory, and for rare alarms."""

EXPERIMENTS = (
    PAPER
    | PROMISE
    | {
        "explanations": EXPLANATIONS,
        "streams": STREAMS,
        "simulated-streams": SIMULATED_STREAMS,
        "power-card": POWER_CARD,
        "contexts": CONTEXTS,
    }
)

GROUPS: dict[str, list[str]] = {
    "paper": [name for name, experiment in PAPER.items() if not experiment.needs_data],
    "promise": list(PROMISE),
}
"""Several at once, by name: those that need no data."""
