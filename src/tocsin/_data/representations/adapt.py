"""From what a user gives as `preprocess` to a representation, and back from a file."""

from __future__ import annotations

import copy
import importlib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Protocol, Self, TypeGuard

import numpy as np

from tocsin._common.errors import InputError, StorageError
from tocsin._common.wording import shown
from tocsin._compute.arrays import Array
from tocsin._data.representations.autoencoder import Encoder
from tocsin._data.representations.base import BATCH_SIZE, Described, Representation, Step, held, named
from tocsin._data.representations.batches import count_of, numbers, piece_of
from tocsin._data.representations.networks import ONNX, Module
from tocsin._data.representations.pca import Projection
from tocsin._data.representations.text import Encodes, SentenceEmbedding


def adapt(preprocess: object, *, batch_size: int | None = None) -> Representation:
    """Whatever can make rows of numbers, as a representation.

    Parameters
    ----------
    preprocess
        A function f(batch) of rows, a scikit-learn transformer or pipeline (fitted, or to be fitted), a PyTorch module,
        the path of an ONNX file, `PCA`, `Autoencoder`, `SentenceEmbedding`; or a list of these, one after the other.
    batch_size
        Observations that it is given at once; 512 by default.

    Examples
    --------
    >>> import numpy as np
    >>> mean = adapt(lambda images: images.mean((1, 2)))
    >>> mean(np.ones((3, 8, 8)))
    array([[1.],
           [1.],
           [1.]])
    """
    if isinstance(preprocess, Representation) and batch_size is None:
        return preprocess
    return Representation(_step(preprocess), BATCH_SIZE if batch_size is None else batch_size)


def restore(parts: Described, preprocess: object = None) -> Representation:
    """The representation that `Representation.parts` describes.

    preprocess: the object itself, fitted, if no file can hold it.
    """
    return Representation(_step_again(parts, preprocess), parts["batch_size"], parts["width"], parts["form"])


def _step_again(parts: Described, preprocess: object) -> Step:
    description = parts["description"]
    if parts["step"] is not None:
        if preprocess is not None:
            raise InputError(f"preprocess was given, and the file holds its own ({description}); leave it out.")
        return KINDS[parts["kind"]].restore(parts["step"])
    if preprocess is None:
        raise StorageError(
            f"The detector was made with a preprocess step that no file can hold ({description}). Load it with the "
            "same object, fitted: Detector.load(path, preprocess=...)."
        )
    given = adapt(preprocess)
    if given.needs_fitting:
        raise InputError(
            f"preprocess ({given.describe()}) is not fitted, and the detector's was; give the one that the detector "
            "was fitted with. If it has nothing to learn, give its method: preprocess=transformer.transform."
        )
    return given.step


def _step(preprocess: object) -> Step:
    if isinstance(preprocess, Step):
        return preprocess
    if isinstance(preprocess, Representation):
        return preprocess.step
    if isinstance(preprocess, list | tuple) and preprocess:
        return Chain(tuple(_step(member) for member in preprocess))
    if isinstance(preprocess, str | os.PathLike):
        if Path(preprocess).suffix.lower() != ".onnx":
            raise InputError(
                f"preprocess={os.fspath(preprocess)!r} is not the path of an ONNX file (*.onnx). For a sentence "
                "embedding give SentenceEmbedding('name of a model')."
            )
        return ONNX(preprocess)
    if isinstance(preprocess, type):
        raise InputError(f"preprocess={preprocess.__name__} is a class; give an object: {preprocess.__name__}(...).")
    if _embeds_sentences(preprocess):
        return SentenceEmbedding(preprocess)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(preprocess, torch.nn.Module):
        return Module(preprocess)
    if _transforms(preprocess):
        return Transformer(preprocess, _unfitted(preprocess))
    if callable(preprocess):
        return Function(preprocess)
    method = next((name for name in ("predict_proba", "predict") if hasattr(preprocess, name)), None)
    remedy = f"give its method: preprocess=model.{method}" if method else "see docs/representations.md"
    raise InputError(
        f"preprocess={shown(preprocess)} is a {type(preprocess).__name__}; it must be a function of a batch, a "
        f"transformer (fit and transform), a PyTorch module, an ONNX file, or a list of these; {remedy}."
    )


def _embeds_sentences(preprocess: object) -> TypeGuard[Encodes]:
    return any(parent.__module__.partition(".")[0] == "sentence_transformers" for parent in type(preprocess).__mro__)


def _transforms(preprocess: object) -> TypeGuard[Transforms]:
    return hasattr(preprocess, "transform")


@dataclass(frozen=True)
class Function(Step):
    """Any callable that takes a batch."""

    kind = "function"
    function: Callable[..., object]

    def __call__(self, batch: object) -> object:
        return self.function(batch)

    def describe(self) -> str:
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        return f"the function {name.replace('<locals>.', '')}"


class Transforms(Protocol):
    """What scikit-learn calls a transformer. Those that learn have `fit` too."""

    def transform(self, batch: object, /) -> object: ...


@dataclass(frozen=True)
class Transformer(Step):
    """A scikit-learn transformer or pipeline, or anything with `fit` and `transform`."""

    kind = "transformer"
    transformer: Transforms
    unfitted: bool

    @property
    def needs_fitting(self) -> bool:
        return self.unfitted

    def fit(self, batch: object, seed: int = 0, progress: bool | None = None) -> Transformer:
        """A fitted copy; where it draws random numbers and has no seed, they come from this one."""
        if hasattr(self.transformer, "get_params"):
            fresh = importlib.import_module("sklearn.base").clone(self.transformer)
            seeds = [name for name in fresh.get_params() if name.rpartition("__")[2] == "random_state"]
            unset = {name: seed % 2**32 for name in seeds if fresh.get_params()[name] is None}
            fresh.set_params(**unset)
        else:
            fresh = copy.deepcopy(self.transformer)
        fresh.fit(batch)
        return Transformer(fresh, unfitted=False)

    def __call__(self, batch: object) -> object:
        return self.transformer.transform(batch)

    def describe(self) -> str:
        members = ", ".join(type(member).__name__ for member in _members(self.transformer))
        return type(self.transformer).__name__ + (f" of {members}" if members else "")


def _unfitted(transformer: object) -> bool:
    """Whether it has something to learn and has not.

    A pipeline asks its last step only, which may have nothing to learn although those before it do.
    """
    if not hasattr(transformer, "fit"):
        return False
    if members := _members(transformer):
        return any(_unfitted(member) for member in members)
    if not hasattr(transformer, "__sklearn_tags__"):
        return not any(
            name.endswith("_") and not name.startswith("__") for name in getattr(transformer, "__dict__", ())
        )
    not_fitted = importlib.import_module("sklearn.exceptions").NotFittedError
    try:
        importlib.import_module("sklearn.utils.validation").check_is_fitted(transformer)
    except not_fitted:
        return True
    return False


def _members(transformer: object) -> list[object]:
    """What a pipeline, or a union, of scikit-learn is made of; nothing for anything else."""
    pipelines = sys.modules.get("sklearn.pipeline")
    if pipelines is None or not isinstance(transformer, pipelines.Pipeline | pipelines.FeatureUnion):
        return []
    pairs = transformer.steps if hasattr(transformer, "steps") else transformer.transformer_list
    return [member for _, member in pairs if not isinstance(member, str)]


@dataclass(frozen=True)
class Chain(Step):
    """Steps, one after the other; only those that need it are fitted."""

    kind = "chain"
    steps: tuple[Step, ...]

    @property
    def needs_fitting(self) -> bool:
        return any(step.needs_fitting for step in self.steps)

    @property
    def storable(self) -> bool:
        return all(step.storable for step in self.steps)

    def fit(self, batch: object, seed: int = 0, progress: bool | None = None) -> Chain:
        fitted: list[Step] = []
        for step in self.steps:
            with named(step, "fitting"):
                fitted.append(step.fit(batch, seed, progress) if step.needs_fitting else step)
            if len(fitted) < len(self.steps):
                starts = range(0, count_of(batch), BATCH_SIZE)
                batch = _joined([_handed_on(fitted[-1], piece_of(batch, i, i + BATCH_SIZE)) for i in starts])
        return Chain(tuple(fitted))

    def __call__(self, batch: object) -> object:
        for step in self.steps:
            batch = _handed_on(step, batch)
        return batch

    def describe(self) -> str:
        return ", then ".join(step.describe() for step in self.steps)

    def parts(self) -> dict[str, object]:
        return {"steps": [{"kind": step.kind, "step": step.parts()} for step in self.steps]}

    @classmethod
    def restore(cls, parts: Mapping[str, object]) -> Self:
        return cls(tuple(KINDS[step["kind"]].restore(step["step"]) for step in held(parts, "steps", list)))


def _handed_on(step: Step, batch: object) -> list[object] | Array:
    """What the next step of a chain is given: a list as it is (of strings, say), all else as an array."""
    with named(step, "calling"):
        output = step(batch)
        return output if isinstance(output, list) else numbers(output)


def _joined(pieces: list[list[object] | Array]) -> list[object] | Array:
    return list(chain(*pieces)) if isinstance(pieces[0], list) else np.concatenate([np.asarray(own) for own in pieces])


KINDS: dict[str, type[Step]] = {kind.kind: kind for kind in (Chain, Encoder, ONNX, Projection)}
"""What a file can hold."""
