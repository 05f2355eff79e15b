"""Outcomes as a data frame, of whichever library."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tocsin._common.errors import MissingExtraError

if TYPE_CHECKING:
    from tocsin._compute.arrays import Float64Array
    from tocsin._state.outcomes import Outcomes

Library = Literal["pandas", "polars", "pyarrow"]


def frame_of(outcomes: Outcomes, library: Library) -> Any:
    """A row per outcome; null, or what the library has instead, for what is not known."""
    purpose = f"Outcomes as a frame of {library}"
    try:
        import narwhals as nw
    except ImportError as error:
        raise MissingExtraError("narwhals", "data", purpose) from error
    try:
        import_module(library)
    except ImportError as error:
        raise MissingExtraError(library, "data" if library == "pyarrow" else None, purpose) from error
    channels, some = outcomes.channel, np.isnan(outcomes.statistic).any()
    # A whole number in pandas is never missing.
    window = nw.Float64() if library == "pandas" and some else nw.Int64()
    columns = {
        "time": (nw.Int64(), outcomes.time),
        "alarm": (nw.Boolean(), outcomes.alarm),
        "statistic": (nw.Float64(), _known(outcomes.statistic)),
        "threshold": (nw.Float64(), _known(outcomes.threshold)),
        "rarity": (nw.Float64(), _known(outcomes.rarity)),
        "channel_statistic": (nw.String(), [channel and channel.statistic for channel in channels]),
        "channel_window": (window, [channel and channel.window for channel in channels]),
        "channel_width": (nw.Float64(), [channel and channel.width for channel in channels]),
        "channel_view": (nw.String(), [channel and channel.view for channel in channels]),
        "channel_column": (nw.String(), [channel and channel.column for channel in channels]),
    }
    if outcomes.unseen is not None:
        columns["unseen"] = nw.Boolean(), outcomes.unseen
    data = {name: values for name, (_, values) in columns.items()}
    schema = {name: kind for name, (kind, _) in columns.items()}
    return nw.from_dict(data, schema, backend=library).to_native()


def _known(numbers: Float64Array) -> list[float | None]:
    return [None if number != number else number for number in numbers.tolist()]
