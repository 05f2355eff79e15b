"""An autoencoder: many numbers per observation to few, by a network that is trained for it. Needs PyTorch."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from types import ModuleType
from typing import Self

import numpy as np

from tocsin._common.errors import InputError, MissingExtraError
from tocsin._compute.arrays import Array, Float32Array
from tocsin._data.representations.base import Learner, Step, held
from tocsin._data.representations.batches import check_sizes, finite_numbers, numbers
from tocsin._data.representations.networks import Network
from tocsin._execution.progress import progress_bar

LAYERS, CHANNELS = (128,), (32, 64)
"""Of the encoder, by default: for rows, and for images."""

TRAINED_AT_ONCE = 32
LEARNING_RATE = 3e-3

COLOURS = (1, 3, 4)
"""An axis of this length, at the end of an image, holds its colours."""


@dataclass(frozen=True)
class Autoencoder(Learner):
    """A network that learns to reproduce observations from few numbers; these are the rows. Needs the extra `torch`.

    Rows of numbers get dense layers. Images, (height, width), (channels, height, width) or (height, width, colours)
    each, get convolutions that halve their sides, and a dense layer at the end.

    Parameters
    ----------
    latent
        How many numbers.
    hidden
        Widths of the encoder's layers, or channels of its convolutions; the decoder mirrors them. Default: 128 for
        rows, 32 and 64 for images.
    epochs
        How often each observation is seen.
    seed
        Whole number for reproducible weights; None for the seed that `fit` is given.
    device
        Where to train and to run, as PyTorch names it. Results differ a little from one kind of device to another.
    """

    latent: int
    hidden: Sequence[int] | None = None
    epochs: int = 30
    seed: int | None = None
    device: str = "cpu"
    kind = "autoencoder"

    def fit(self, batch: object, seed: int = 0, progress: bool | None = None) -> Encoder:
        """Train on these observations, and keep the encoder."""
        layers = None if self.hidden is None else tuple(np.atleast_1d(np.asarray(self.hidden)).tolist())
        check_sizes("Autoencoder", **{f"hidden[{i}]": size for i, size in enumerate(layers or ())})
        check_sizes("Autoencoder", latent=self.latent, epochs=self.epochs)
        torch = load_torch()
        values = _channels_first(finite_numbers(batch))
        shape = values.shape[1:]
        hidden = (LAYERS if len(shape) == 1 else CHANNELS) if layers is None else layers
        if not hidden and len(shape) > 1:
            raise InputError("Autoencoder(hidden=()) has no convolutions for images; flatten them, or name some.")
        axes = 0 if len(shape) == 1 else (0, 2, 3)
        mean, deviation = (moment(axes, keepdims=True)[0].astype(np.float32) for moment in (values.mean, values.std))
        # What never varies has no scale of its own.
        scale = np.where(deviation <= 1e-6 * np.abs(mean), np.float32(1), deviation)
        chosen = seed if self.seed is None else self.seed
        with one_thread(torch), torch.random.fork_rng(devices=[]), progress_bar("training", progress) as report:
            torch.manual_seed(chosen)
            encoder, decoder = build_encoder(shape, hidden, self.latent), build_decoder(shape, hidden, self.latent)
            network = torch.nn.Sequential(encoder, decoder).to(self.device)
            optimiser = torch.optim.Adam(network.parameters(), LEARNING_RATE)
            rng, loss = np.random.default_rng(chosen), 0.0
            for epoch in range(self.epochs):
                loss, order = 0.0, rng.permutation(len(values))
                for start in range(0, len(order), TRAINED_AT_ONCE):
                    seen = torch.tensor((values[order[start : start + TRAINED_AT_ONCE]] - mean) / scale).to(self.device)
                    error = torch.nn.functional.mse_loss(network(seen), seen)
                    optimiser.zero_grad()
                    error.backward()
                    optimiser.step()
                    loss += error.item() * len(seen) / len(order)
                report(epoch + 1, self.epochs)
        weights = {name: value.cpu().numpy().copy() for name, value in encoder.state_dict().items()}
        variance = float(np.mean((values.std(0) / scale) ** 2)) or 1.0
        return Encoder(shape, hidden, int(self.latent), mean, scale, weights, 1 - loss / variance, self.device)

    def describe(self) -> str:
        return f"autoencoder to {self.latent} numbers"


@dataclass(frozen=True, eq=False)
class Encoder(Step):
    """The trained half of an autoencoder.

    shape: of an observation, channels first.  mean, scale: what is taken off it, and what it is divided by.
    weights: of the network, by the names that PyTorch gives them.
    explained: the part of the variance that the decoder gave back, in the last epoch of training.
    """

    shape: tuple[int, ...]
    hidden: tuple[int, ...]
    latent: int
    mean: Float32Array
    scale: Float32Array
    weights: dict[str, Array]
    explained: float
    device: str = "cpu"
    kind = "encoder"

    @property
    def storable(self) -> bool:
        return True

    @cached_property
    def network(self) -> Network:
        """The encoder, built."""
        torch = load_torch()
        with torch.random.fork_rng(devices=[]):
            network = build_encoder(self.shape, self.hidden, self.latent)
        network.load_state_dict({name: torch.tensor(value) for name, value in self.weights.items()})
        return network.to(self.device).eval()

    def __call__(self, batch: object) -> object:
        torch, values = load_torch(), _channels_first(numbers(batch))
        if values.shape[1:] != self.shape:
            raise InputError(
                f"The autoencoder was trained on observations of shape {self.shape}, and got some of shape "
                f"{values.shape[1:]}; they must be alike."
            )
        with one_thread(torch), torch.no_grad():
            return self.network(torch.tensor((values - self.mean) / self.scale).to(self.device))

    def describe(self) -> str:
        shape = " x ".join(map(str, self.shape))
        return f"autoencoder of {shape} numbers to {self.latent} ({self.explained:.0%} of the variance)"

    def parts(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def restore(cls, parts: Mapping[str, object]) -> Self:
        return cls(
            shape=held(parts, "shape", tuple),
            hidden=held(parts, "hidden", tuple),
            latent=held(parts, "latent", int),
            mean=held(parts, "mean", np.ndarray),
            scale=held(parts, "scale", np.ndarray),
            weights=held(parts, "weights", dict),
            explained=held(parts, "explained", float),
            device=held(parts, "device", str),
        )


def build_encoder(shape: tuple[int, ...], hidden: tuple[int, ...], latent: int) -> Network:
    """From an observation of this shape to `latent` numbers."""
    nn = load_torch().nn
    if len(shape) == 1:
        return separated(_dense((*shape, *hidden, latent)))
    channels, sides = (shape[0], *hidden), _sides(shape, len(hidden))
    halving = [nn.Conv2d(few, many, 3, stride=2, padding=1) for few, many in pairwise(channels)]
    size = hidden[-1] * sides[-1][0] * sides[-1][1]
    return in_turn(separated(halving), nn.ReLU(), nn.Flatten(), nn.Linear(size, latent))


def build_decoder(shape: tuple[int, ...], hidden: tuple[int, ...], latent: int) -> Network:
    """The way back, layer by layer."""
    nn = load_torch().nn
    if len(shape) == 1:
        return separated(_dense((latent, *hidden[::-1], *shape)))
    channels, sides = (shape[0], *hidden), _sides(shape, len(hidden))
    doubling = [
        # Two lengths have the same half; the padding tells which it was.
        nn.ConvTranspose2d(
            channels[i + 1], channels[i], 3, stride=2, padding=1, output_padding=tuple(1 - s % 2 for s in sides[i])
        )
        for i in reversed(range(len(hidden)))
    ]
    smallest = (hidden[-1], *sides[-1])
    size = int(np.prod(smallest))
    return in_turn(nn.Linear(latent, size), nn.Unflatten(1, smallest), nn.ReLU(), separated(doubling))


def load_torch(extra: str = "torch", purpose: str = "An autoencoder") -> ModuleType:
    """PyTorch, if it is installed."""
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise MissingExtraError("torch", extra, purpose) from error


@contextmanager
def one_thread(torch: ModuleType) -> Iterator[None]:
    """Sums in one order give one result, however many cores there are."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _dense(sizes: tuple[int, ...]) -> list[Network]:
    linear = load_torch().nn.Linear
    return [linear(before, after) for before, after in pairwise(sizes)]


def separated(layers: list[Network]) -> Network:
    """Layers with a ReLU between each two."""
    nn = load_torch().nn
    first, *others = layers
    return in_turn(first, *(part for layer in others for part in (nn.ReLU(), layer)))


def in_turn(*layers: Network) -> Network:
    """One network, in which each layer is given what the one before it gives."""
    network: Network = load_torch().nn.Sequential(*layers)
    return network


def _sides(shape: tuple[int, ...], halvings: int) -> list[tuple[int, int]]:
    """Height and width of an image, and after each convolution."""
    sides = [(shape[1], shape[2])]
    for _ in range(halvings):
        sides.append(((sides[-1][0] + 1) // 2, (sides[-1][1] + 1) // 2))
    return sides


def _channels_first(values: Array) -> Float32Array:
    """Rows as they are; images as (n, channels, height, width)."""
    if values.ndim in (1, 3):
        values = values[:, None]
    elif values.ndim == 4 and values.shape[-1] in COLOURS and values.shape[1] not in COLOURS:
        values = values.transpose(0, 3, 1, 2)
    elif values.ndim > 4:
        raise InputError(
            f"An autoencoder takes rows of numbers or images, and got observations of shape {values.shape[1:]}; "
            "reshape them."
        )
    return np.ascontiguousarray(values, dtype=np.float32)
