"""Trained networks as representations: PyTorch modules and ONNX files."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol, Self

import numpy as np

from tocsin._common.errors import InputError, MissingExtraError, Option
from tocsin._compute.arrays import Array
from tocsin._data.foreign import Tensor
from tocsin._data.representations.base import Step, held
from tocsin._data.representations.batches import numbers

INPUTS = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}
"""What ONNX calls the numbers that a model may take, and what NumPy does."""


class Network(Protocol):
    """A module of PyTorch's."""

    training: bool

    def __call__(self, batch: Tensor, /) -> object: ...

    def eval(self) -> Network: ...

    def to(self, device: str, /) -> Network: ...

    def modules(self) -> Iterable[Network]:
        """Itself, and all that it is made of."""

    def parameters(self) -> Iterator[Tensor]: ...

    def state_dict(self) -> Mapping[str, Tensor]: ...

    def load_state_dict(self, weights: Mapping[str, Tensor], /) -> object: ...


@dataclass(frozen=True)
class Module(Step):
    """A trained PyTorch module, called where its parameters are.

    Numbers become tensors of the parameters' type. A tensor of whole numbers stays what it is, since it may hold the
    numbers of words.
    """

    kind = "module"
    module: Network

    def __call__(self, batch: object) -> object:
        torch = importlib.import_module("torch")
        own = next(self.module.parameters(), torch.empty(0))
        if isinstance(batch, torch.Tensor):
            given: Tensor = batch
        else:
            precision = np.float64 if own.dtype == torch.float64 else np.float32
            given = torch.tensor(np.ascontiguousarray(numbers(batch), dtype=precision))
        dtype = own.dtype if given.is_floating_point() else given.dtype
        with torch.no_grad(), _evaluating(self.module):
            output = self.module(given.to(device=own.device, dtype=dtype))
        if not isinstance(output, torch.Tensor):
            raise InputError(
                f"The module gave a {type(output).__name__}, and a tensor with one row per observation is needed; give "
                "a function that picks it: preprocess=lambda batch: module(torch.as_tensor(batch))[0]."
            )
        return output

    def describe(self) -> str:
        return f"the PyTorch module {type(self.module).__name__}"


@contextmanager
def _evaluating(module: Network) -> Iterator[None]:
    """With dropout and the like off; afterwards every part of the module is in the mode that it was in."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


class Entry(Protocol):
    """An input or an output of a session."""

    name: str
    type: str
    shape: Sequence[object]


class Session(Protocol):
    """A model as onnxruntime has it."""

    def get_inputs(self) -> Sequence[Entry]: ...

    def get_outputs(self) -> Sequence[Entry]: ...

    def run(self, outputs: list[str], feed: dict[str, Array], /) -> Sequence[Array]: ...


class ONNX(Step):
    """A model in an ONNX file with a single input, run by onnxruntime. Needs the extra `onnx`.

    Parameters
    ----------
    model
        The file's path, or its bytes. Detectors that are saved hold the model.
    output
        The name of the output to take; the first by default. It must have one row per observation.
    """

    kind = "onnx"

    def __init__(self, model: str | os.PathLike[str] | bytes, output: str | None = None) -> None:
        self.model, self.output = model, output
        self.name = Path(model).name if isinstance(model, str | os.PathLike) else ""

    @cached_property
    def content(self) -> bytes:
        """The file, read when it is first wanted: by a fit, or to go along where the model goes."""
        if isinstance(self.model, bytes):
            return self.model
        try:
            return Path(self.model).read_bytes()
        except TypeError as error:
            raise InputError(
                Option("model", self.model, of="ONNX"), ": a model is the path of an ONNX file, or its bytes."
            ) from error
        except OSError as error:
            raise InputError(
                f"Cannot read the ONNX file {self.model}: {error.strerror}. Give the path of a file."
            ) from error

    @property
    def storable(self) -> bool:
        return True

    @cached_property
    def session(self) -> Session:
        """The model, loaded."""
        content = self.content
        try:
            runtime = importlib.import_module("onnxruntime")
        except ImportError as error:
            raise MissingExtraError("onnxruntime", "onnx", "Running an ONNX file") from error
        failures = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
        try:
            session: Session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
        except (failures.Fail, failures.InvalidProtobuf, failures.InvalidGraph, failures.NotImplemented) as error:
            raise InputError(
                f"onnxruntime cannot load {self.describe()}; it must be one whole file, its weights included: {error}"
            ) from error
        _check(session, self.output, self.describe())
        return session

    def __call__(self, batch: object) -> Array:
        entry = self.session.get_inputs()[0]
        values = np.ascontiguousarray(numbers(batch), dtype=INPUTS[entry.type])
        # A model that was exported for single observations gets them one by one.
        size = 1 if entry.shape and entry.shape[0] == 1 else max(len(values), 1)
        wanted = self.output or self.session.get_outputs()[0].name
        feeds = ({entry.name: values[i : i + size]} for i in range(0, len(values), size))
        return np.concatenate([np.atleast_1d(self.session.run([wanted], feed)[0]) for feed in feeds])

    def describe(self) -> str:
        return f"the ONNX model {self.name}".rstrip() + (f", output {self.output!r}" if self.output else "")

    def parts(self) -> dict[str, object]:
        return {"name": self.name, "output": self.output, "content": np.frombuffer(self.content, dtype=np.uint8)}

    @classmethod
    def restore(cls, parts: Mapping[str, object]) -> Self:
        output = None if parts["output"] is None else held(parts, "output", str)
        model = cls(np.asarray(held(parts, "content", np.ndarray), dtype=np.uint8).tobytes(), output)
        model.name = held(parts, "name", str)
        return model

    def __getstate__(self) -> dict[str, object]:
        # A session cannot be copied, and a path may mean nothing where it is unpickled.
        return {"model": self.content, "output": self.output, "name": self.name}


def _check(session: Session, output: str | None, what: str) -> None:
    inputs, outputs = session.get_inputs(), [entry.name for entry in session.get_outputs()]
    if len(inputs) != 1 or inputs[0].type not in INPUTS:
        found = ", ".join(f"{entry.name}: {entry.type}" for entry in inputs)
        raise InputError(
            f"{what} takes ({found}), and a single tensor of floating point numbers can be given; give a function that "
            "calls onnxruntime itself."
        )
    size = inputs[0].shape[0] if inputs[0].shape else None
    if isinstance(size, int) and size != 1:
        raise InputError(
            f"{what} takes exactly {size} observations at once, and streams come in blocks of any size; export it with "
            "a first axis of any length."
        )
    if output is not None and output not in outputs:
        raise InputError(f"{what} is not there; the model's outputs are {', '.join(map(repr, outputs))}.")
