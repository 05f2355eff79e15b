"""What a file's representation must be: the step that it holds, and the arrays of that."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tocsin._data.representations.adapt import KINDS
from tocsin._detector.schema import Array, Choice, Many, Maybe, Number, Record, Rule, Whole, Wrong, anything, must, text

LARGEST_SIDE = 2**20
"""Of an image, or numbers of a layer: their products are no surprise."""


def representation(value: Any, at: str) -> None:
    """What `Representation.parts` gave."""
    Record(
        {
            "kind": text,
            "description": text,
            "batch_size": Whole(1),
            "width": Whole(1),
            "form": Maybe(text),
            "step": anything,
        }
    )(value, at)
    if value["step"] is not None:
        _step({"kind": value["kind"], "step": value["step"]}, at)


def _step(value: Any, at: str) -> None:
    Record({"kind": Choice(tuple(KINDS)), "step": anything})(value, at)
    RULES[value["kind"]](value["step"], f"{at}.{value['kind']}")


def _projection(value: Any, at: str) -> None:
    Record(
        {"mean": Array("f8", (None,)), "axes": Array("f8", (None, None)), "explained": Number(nan=True)},
    )(value, at)
    must(value["axes"].shape[1] == len(value["mean"]), f"{at}.axes", value["axes"].shape, "as wide as the mean")


def _onnx(value: Any, at: str) -> None:
    Record({"name": text, "output": Maybe(text), "content": Array("u1", (None,))})(value, at)


def _encoder(value: Any, at: str) -> None:
    sizes = Many(Whole(1, LARGEST_SIDE), 1, 3)
    rules: dict[str, Rule] = {
        "shape": sizes,
        "hidden": Many(Whole(1, LARGEST_SIDE), 0, 100),
        "latent": Whole(1, LARGEST_SIDE),
        "mean": anything,
        "scale": anything,
        "weights": anything,
        "explained": Number(nan=True),
        "device": text,
    }
    Record(rules)(value, at)
    shape, device = value["shape"], value["device"]
    must(len(shape) != 2, f"{at}.shape", shape, "that of a row, or of an image with its channels")
    must(len(shape) == 1 or len(value["hidden"]) > 0, f"{at}.hidden", value["hidden"], "some, for images")
    known = device in ("cpu", "cuda", "mps") or (device[:5] == "cuda:" and device[5:].isdecimal())
    must(known, f"{at}.device", device, "one that PyTorch has")
    per_channel = tuple(shape) if len(shape) == 1 else (shape[0], 1, 1)
    Array("f4", per_channel)(value["mean"], f"{at}.mean")
    Array("f4", per_channel)(value["scale"], f"{at}.scale")
    must(bool((value["scale"] != 0).all()), f"{at}.scale", value["scale"], "numbers to divide by")
    expected = _network(tuple(shape), tuple(value["hidden"]), value["latent"])
    Record({name: Array("f4", own) for name, own in expected.items()})(value["weights"], f"{at}.weights")


def _network(shape: tuple[int, ...], hidden: tuple[int, ...], latent: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the weights of `autoencoder.build_encoder`."""
    weights: dict[str, tuple[int, ...]] = {}
    if len(shape) == 1:
        for i, (before, after) in enumerate(pairwise((*shape, *hidden, latent))):
            weights |= {f"{2 * i}.weight": (after, before), f"{2 * i}.bias": (after,)}
        return weights
    height, width = shape[1:]
    for i, (before, after) in enumerate(pairwise((shape[0], *hidden))):
        weights |= {f"0.{2 * i}.weight": (after, before, 3, 3), f"0.{2 * i}.bias": (after,)}
        height, width = (height + 1) // 2, (width + 1) // 2
    return weights | {"3.weight": (latent, hidden[-1] * height * width), "3.bias": (latent,)}


def _chain(value: Any, at: str) -> None:
    Record({"steps": Many(anything, 1, 100)})(value, at)
    for i, own in enumerate(value["steps"]):
        if isinstance(own, dict) and own.get("kind") == "chain":
            raise Wrong(at, own, "a chain of steps, not of chains")
        _step(own, f"{at}[{i}]")


RULES: dict[str, Rule] = {"chain": _chain, "encoder": _encoder, "onnx": _onnx, "projection": _projection}
