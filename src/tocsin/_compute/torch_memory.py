"""Between host and device, and within the device's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from tocsin._compute.arrays import Array

Given: TypeAlias = Tensor | Array
"""A tensor, or an array of NumPy's that is to become one."""

SHARE = 0.4
"""The part of the device's free memory that is planned for."""

HOST_BYTES = 2**28
"""What is planned for on a CPU, and on a GPU without asking how much of it is free, which takes a millisecond."""


def put(device: str, array: Given) -> Tensor:
    return torch.as_tensor(array, device=device)


def get(array: Given) -> Array:
    return array.cpu().numpy() if isinstance(array, torch.Tensor) else np.asarray(array)


def free_bytes(device: torch.device) -> int:
    if device.type != "cuda":
        return HOST_BYTES
    free, _ = torch.cuda.mem_get_info(device)
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(SHARE * (free + kept))


def in_pieces(function: Callable[[int, int], None], count: int, bytes_each: float, device: torch.device) -> None:
    """function(start, stop) over 0 to `count`, as many at a time as fit into memory; half as many if they do not."""
    free = HOST_BYTES if count * bytes_each <= HOST_BYTES else free_bytes(device)
    size, start = max(1, min(count, int(free / bytes_each))), 0
    while start < count:
        try:
            function(start, min(start + size, count))
        except torch.OutOfMemoryError:
            if size == 1:
                raise
            failed = True
        else:
            failed = False
        # Only now is what the failed piece held let go of.
        if failed:
            size //= 2
            torch.cuda.empty_cache()
        else:
            start += size
