"""The autoencoder of the paper's appendix: pictures to 32 numbers and back. Needs PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from tocsin._compute.arrays import Float32Array, Int64Array
from tocsin._data.representations import autoencoder as representations
from tocsin._data.representations.autoencoder import one_thread, separated
from tocsin._experiments.pictures import UInt8Array

if TYPE_CHECKING:
    from torch import Tensor, nn

CHANNELS = (3, 8, 12, 16, 24, 32)
BATCH = 32
LEARNING_RATE = 1e-3


@dataclass(frozen=True)
class Autoencoder:
    """Five convolutions from (3, side, side) to (32, 1, 1), and five transposed ones back, separated by ReLU.

    Pictures are (n, side, side, 3), 0 to 255; the network sees them from 0 to 1.
    """

    encoder: nn.Module
    decoder: nn.Module

    def fit(self, pictures: UInt8Array, epochs: int, rng: np.random.Generator) -> float:
        """Train to reproduce the pictures; the mean squared error per pixel and colour over the last epoch."""
        torch = load_torch()
        with one_thread(torch):  # configurations run side by side, one per core
            return self._fit(torch, pictures, epochs, rng)

    def encode(self, pictures: UInt8Array) -> Float32Array:
        """(n, 32): what the encoder makes of each picture."""
        torch = load_torch()
        with one_thread(torch), torch.no_grad():
            return np.asarray(self.encoder(_tensor(torch, pictures)).flatten(1).numpy())

    def _fit(self, torch: ModuleType, pictures: UInt8Array, epochs: int, rng: np.random.Generator) -> float:
        optimiser = torch.optim.Adam([*self.encoder.parameters(), *self.decoder.parameters()], LEARNING_RATE)
        loss = np.nan
        for _ in range(epochs):
            total = 0.0
            for batch in _batches(rng.permutation(len(pictures))):
                seen = _tensor(torch, pictures[batch])
                error = torch.nn.functional.mse_loss(self.decoder(self.encoder(seen)), seen)
                optimiser.zero_grad()
                error.backward()
                optimiser.step()
                total += error.item() * len(batch)
            loss = total / len(pictures)
        return float(loss)


def build(side: int, seed: int) -> Autoencoder:
    """An untrained autoencoder for pictures of side x side pixels."""
    torch = load_torch()
    layers = list(zip(CHANNELS[:-1], CHANNELS[1:], strides(side), strict=True))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        # A kernel of stride + 2 with a padding of 1 divides the side by the stride exactly.
        down = [torch.nn.Conv2d(few, many, stride + 2, stride, padding=1) for few, many, stride in layers]
        up = [torch.nn.ConvTranspose2d(many, few, stride + 2, stride, padding=1) for few, many, stride in layers[::-1]]
    return Autoencoder(separated(down), separated(up))


def strides(side: int) -> tuple[int, ...]:
    """Five factors of the side, smallest first.

    >>> strides(96)
    (2, 2, 2, 3, 4)
    """
    factors, rest = [], side
    for prime in range(2, side + 1):
        while rest % prime == 0:
            factors.append(prime)
            rest //= prime
    while len(factors) > len(CHANNELS) - 1:
        factors = sorted([factors[0] * factors[1], *factors[2:]])
    return tuple([1] * (len(CHANNELS) - 1 - len(factors)) + factors)


def load_torch() -> ModuleType:
    """PyTorch, if it is installed."""
    torch: ModuleType = representations.load_torch("imaging", "Encoding pictures")
    return torch


def _tensor(torch: ModuleType, pictures: UInt8Array) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(pictures.transpose(0, 3, 1, 2), dtype=np.float32) / 255)


def _batches(rows: Int64Array) -> list[Int64Array]:
    return [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]
