"""Texts as rows of numbers."""

from __future__ import annotations

import importlib
from functools import cached_property
from typing import Protocol

from tocsin._common.errors import InputError, MissingExtraError
from tocsin._data.representations.base import Step
from tocsin._data.representations.batches import listed


class Encodes(Protocol):
    """A model that gives one row of numbers per text."""

    def encode(self, texts: list[str], /) -> object: ...


class SentenceEmbedding(Step):
    """Texts to the vectors that a language model gives them.

    Parameters
    ----------
    model
        An object with `encode(list of str)` that gives one row of numbers per text, as models of sentence-transformers
        do; or the name, or the folder, of a model for sentence-transformers to load (the extra `text`).
    """

    kind = "sentence embedding"

    def __init__(self, model: str | Encodes) -> None:
        self.model = model

    @cached_property
    def encoder(self) -> Encodes:
        """The model, loaded."""
        if not isinstance(self.model, str):
            if not callable(getattr(self.model, "encode", None)):
                raise InputError(
                    f"SentenceEmbedding({type(self.model).__name__}): a model has a method encode(list of str) that "
                    "gives one row of numbers per text; or give the name of a model of sentence-transformers."
                )
            return self.model
        try:
            library = importlib.import_module("sentence_transformers")
        except ImportError as error:
            raise MissingExtraError("sentence-transformers", "text", f"SentenceEmbedding({self.model!r})") from error
        loaded: Encodes = library.SentenceTransformer(self.model)
        return loaded

    def __call__(self, batch: object) -> object:
        if len(getattr(batch, "shape", ("any",))) != 1:
            raise InputError(
                f"SentenceEmbedding takes texts, and got a {type(batch).__name__} with columns; choose the one with "
                "the texts: preprocess=[lambda table: list(table['name']), SentenceEmbedding(model)]."
            )
        texts = listed(batch)
        for place, text in enumerate(texts):
            if not isinstance(text, str):
                raise InputError(
                    f"Observation {place} of a batch is a {type(text).__name__} ({str(text)[:40]!r}), not a text. "
                    "Choose the column that holds the texts, and drop or fill those that are missing."
                )
        return self.encoder.encode([str(text) for text in texts])

    def describe(self) -> str:
        name = repr(self.model) if isinstance(self.model, str) else type(self.model).__name__
        return f"sentence embedding by {name}"
