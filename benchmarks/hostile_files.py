"""Files and states that were made up: valid ones, altered, with checksums that are right.

bytes      bytes of an array, or of the description
number     a number of the description becomes another: huge, negative, NaN, one more
type       a value of the description becomes one of another type
deleted    a value is left out        added    one comes twice, or is new
spare      an array that is new, in the place of a value
element    numbers of an array become others
shape, dtype, swapped    arrays become others
zip        what is not in the description: compression, names, headers, depth
raw        the file as a whole is damaged: cut, bytes changed
state      a state of a fleet, its numbers or its bytes

A long file, since it has the files, and every way in which they are altered, beside each other.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from typer.testing import CliRunner

from benchmarks.hostile_tries import Broken, Try
from tocsin import (
    LSDD,
    MMD,
    Blocks,
    Custom,
    Detector,
    DetectorBank,
    Fleet,
    Gaussian,
    Landmarks,
    MeanShift,
    TocsinError,
    Views,
)
from tocsin._cli import actions, app
from tocsin._common.errors import InputError
from tocsin._compute.arrays import Array, Float64Array
from tocsin.baselines import LSDDInc, ScanB
from tocsin.representations import PCA

Members = dict[str, bytes]

NASTY: tuple[float, ...] = (
    0, -1, 1, 2, 3, 7, 100, -100, 2**31 - 1, 2**31, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63), 2**64, 10**30, 0.5,
    -0.5, 1e-8, 1e-300, 5e-324, 1e15, 1e100, 1e300, 1.7e308, -1.7e308, math.inf, -math.inf, math.nan,
)  # fmt: skip
OTHERS: tuple[Any, ...] = (
    None, True, False, "", "x", "warm", "cold", "MMD", 0, -1, 1.5, [], [[]], [None], {}, {"items": {}}, {"$tuple": []},
    {"$array": 0}, {"$array": -1}, {"$array": 10**9}, {"$array": "0"}, {"$class": "MMD", "fields": {}}, "\ud800",
    {"$class": "Objects", "fields": {}}, {"$class": "Rows", "fields": {"width": 1}}, {"$function": "f"}, {"$tuple": 3},
)  # fmt: skip
KINDS = ("f8", "f4", "f2", "i8", "i4", "i1", "u8", "u1", "?", ">f8", "c16", "U3")


def letters(X: list[str], Y: list[str]) -> Array:
    """A kernel on words, or on whatever else a file holds in their place: it is the user's to cope with that."""
    first, second = ([set(str(x)) for x in points] for points in (X, Y))
    return np.array([[len(x & y) for y in second] for x in first], dtype=np.float64).reshape(len(X), len(Y))


def medians(X: Float64Array, Y: Float64Array) -> float:
    """A statistic of a user's own."""
    return float(np.abs(np.median(X, 0) - np.median(Y, 0)).sum())


def rows(seed: int, count: int, shift: float = 0.0) -> Float64Array:
    """Observations."""
    return np.random.default_rng(seed).normal(shift, 1.0, (count, 2))


def words(seed: int, count: int, alphabet: str = "abcdef") -> list[str]:
    """The same for kernels on words."""
    return ["".join(own) for own in np.random.default_rng(seed).choice(list(alphabet), (count, 3))]


def records(seed: int, count: int, shift: float = 0.0) -> list[dict[str, Any]]:
    """Rows of a table."""
    rng = np.random.default_rng(seed)
    return [
        {
            "size": None if i % 17 == 3 else float(rng.normal(shift)),
            "colour": str(rng.choice(["red", "blue"])),
            "name": str(rng.integers(10**9)),
            "on": bool(rng.integers(2)),
        }
        for i in range(count)
    ]


def around(seed: int, count: int, shift: float = 0.0) -> list[dict[str, Any]]:
    """Rows with a context: of some no reference has the like."""
    rng = np.random.default_rng(seed)
    loads, hours = rng.normal(size=count), rng.integers(24, size=count)
    return [
        {
            "load": 99.0 if i % 13 == 12 and seed else float(load),
            "place": f"place {i % 3}",
            "time": f"2024-03-{1 + i // 10:02d}T{hour:02d}:00",
            "size": None if i % 17 == 3 else float(2 * load + rng.normal(shift)),
            "colour": str(rng.choice(["red", "blue"])),
        }
        for i, (load, hour) in enumerate(zip(loads, hours, strict=True))
    ]


OWN: dict[str, Any] = {"statistic": Views(), "baseline": 10, "paths": 6}
"""Of streams with levels of their own, for which the reference is of recordings."""

DETECTORS: dict[str, tuple[dict[str, Any], Callable[..., Any]]] = {
    "family": ({}, rows),
    "windows": ({"window": (5, 12)}, rows),
    "one width": ({"statistic": MMD(Gaussian())}, rows),
    "landmarks": ({"statistic": MMD(approximation=Landmarks(10))}, rows),
    "LSDD": ({"statistic": LSDD(centres=6)}, rows),
    "MeanShift": ({"statistic": MeanShift()}, rows),
    "direction": ({"statistic": MeanShift([1.0, 2.0])}, rows),
    "several": ({"statistic": [MMD(Gaussian()), MeanShift(), LSDD(centres=5)]}, rows),
    "function": ({"statistic": Custom(medians), "paths": 100, "interval": False}, rows),
    "kernel": ({"statistic": MMD(letters), "paths": 200}, words),
    "blocks": ({"sampler": Blocks(4, 2)}, rows),
    "discrete": ({}, lambda seed, count, shift=0.0: np.rint(rows(seed, count, shift)).clip(-1, 1)[:, :1]),
    "cold": ({"start": "cold", "reset_on_alarm": False}, rows),
    "paper": ({"mode": "paper", "statistic": [MMD(Gaussian()), MeanShift()]}, rows),
    "table": ({}, records),
    "PCA": ({"preprocess": PCA(1)}, rows),
    "views": ({"statistic": Views(), "window": (2, 5), "paths": 6}, rows),
    "views of a table": ({"statistic": Views(), "window": 4, "paths": 6}, records),
    "context": ({"given": ["load", "place", "time"]}, around),
    "views given a context": ({"statistic": Views(), "window": 4, "paths": 6, "given": ["time", "load"]}, around),
    "own levels": ({**OWN, "window": (2, 5)}, rows),
}
CARDED = ("MeanShift", "views of a table")
"""Detectors whose files say what they can see."""

BANKS: dict[str, dict[str, Any]] = {
    "bank": {},
    "cold bank": {"start": "cold"},
    "bank of views": {"statistic": Views(), "window": (2, 5), "paths": 6},
    "bank of own levels": {**OWN, "window": (2, 5)},
}
STATES = {"a": "windows", "b": "windows", "c": "views", "d": "views", "e": "own levels", "f": "own levels"}
"""States of keys, and the detectors that they belong to."""

WATCHED, MORE_WATCHED = "watched", 4
"""A file that a watch has saved, and how much more often than others it is altered."""

FUNCTIONS: dict[str, Any] = {"function": Custom(medians), "kernel": MMD(letters)}
BASELINES: dict[str, type[Any]] = {"ScanB": ScanB, "LSDDInc": LSDDInc}


def _recordings(options: dict[str, Any]) -> Any:
    """Of ninety rows, where there must be some."""
    return np.arange(90) // 22 if "baseline" in options else None


def prepare(folder: Path) -> None:
    """A file of every kind: quiet, and after an alarm; banks; states of fleets."""
    for name, (options, law) in DETECTORS.items():
        given = {"ert": 40, "statistic": MMD(), "window": 5, "paths": 400, "seed": 1, **options}
        detector = Detector(**given).fit(law(0, 90), groups=_recordings(options))
        detector.update_many(law(1, 7))
        if name in CARDED:
            detector.power(progress=False)
        detector.save(folder / f"{name}.tocsin")
        loud = words(2, 12, "xyz") if law is words else law(2, 12, 4.0)
        for x in loud:
            if detector.update(x).alarm:
                break
        detector.save(folder / f"{name}, alarm.tocsin")
    for name, options in BANKS.items():
        given = {"ert": 40, "statistic": MMD(), "window": (5, 9), "paths": 400, "seed": 1, **options}
        fitted = Detector(**given).fit(rows(0, 90), groups=_recordings(options))
        bank = DetectorBank(fitted, 3)
        for i in range(15):
            bank.update(rows(i, 3) + np.array([[0.0], [0.0], [4.0]]))
        bank.save(folder / f"{name}.tocsin")
    for name, kind in BASELINES.items():
        own = kind(60, window=5, seed=1).fit(rows(0, 200))
        own.update_many(rows(1, 7))
        own.save(folder / f"{name}.tocsin")
    watched = folder / f"{WATCHED}.tocsin"
    Detector.load(folder / "windows.tocsin").save(watched)
    np.savetxt(folder / "stream.csv", np.concatenate([rows(1, 20), rows(2, 20, 4.0)]), delimiter=",")
    # With alarms that nobody could be told, and a place in the middle of the stream.
    _watch(watched, "--once", "--alarms", "/dev/full", "--on-alarm", "false")
    for keys in (["a", "b"], ["c", "d"], ["e", "f"]):
        fleet = Fleet(Detector.load(folder / f"{STATES[keys[0]]}.tocsin"))
        step = fleet.step(keys, [None, None], rows(1, 80, 0.5), np.arange(80) % 2, np.arange(80))
        for key, state in zip(keys, step.states, strict=True):
            (folder / f"{key}.state").write_bytes(state)


def ready(folder: Path) -> None:
    """Use every file as it is, so that code is compiled and imported."""
    actions.BACKOFF = 0.001
    for path in sorted(folder.glob("*.tocsin")):
        use(path, path.stem)
    for key in STATES:
        _use_state(folder, key, (folder / f"{key}.state").read_bytes())


def attempt(folder: Path, seed: int, number: int) -> Try:
    """Alter a file, and use it."""
    rng = np.random.default_rng([seed, number])
    kind = str(rng.choice([*ALTERATIONS, "raw", "state"]))
    grounds = sorted(folder.glob("*.tocsin"))
    grounds += [folder / f"{WATCHED}.tocsin"] * MORE_WATCHED
    ground, target = grounds[int(rng.integers(len(grounds)))], folder / "altered"
    if kind == "state":
        key = str(rng.choice(list(STATES)))
        state = _altered_state(rng, (folder / f"{key}.state").read_bytes())
        return Try(kind, len(state), partial(_use_state, folder, key, state))
    content = _damaged(rng, ground.read_bytes()) if kind == "raw" else _altered(rng, kind, ground)
    target.write_bytes(content)
    return Try(kind, len(content), partial(use, target, ground.stem))


# Using what was altered


def use(path: Path, name: str) -> None:
    """Load a file, and do with it all that a detector does."""
    what = name.removesuffix(", alarm")
    if what == WATCHED:
        _watch(path, "--json", "--alarms", str(path.with_suffix(".jsonl")), "--on-alarm", "true")
        return
    if "bank" in what:
        bank = DetectorBank.load(path)
        for stream in range(2, 4):
            _allowed(lambda stream=stream: bank.explain(stream))  # type: ignore[misc]
        for i in range(12):
            _must_be_finite(bank.update(rows(i, bank.streams, i / 4)))
        repr(bank)
        bank.save(path.with_suffix(".again"))
        return
    if what in BASELINES:
        own = BASELINES[what].load(path)
        _must_be_finite(own.update_many(rows(3, 40, 0.5)))
        _must_be_finite([own.update(x) for x in rows(4, 3)])
        repr(own)
        own.save(path.with_suffix(".again"))
        return
    law = DETECTORS[what][1]
    detector = Detector.load(path, statistic=FUNCTIONS.get(what))
    _allowed(detector.explain)
    _must_be_finite([detector.update(x) for x in law(3, 5)])
    outcomes = detector.update_many(law(4, 40) if law is words else law(4, 40, 0.7))
    _must_be_finite(outcomes)
    outcomes = detector.update_until_alarm(words(5, 30, "uvw") if law is words else law(5, 30, 3.0))
    _must_be_finite(outcomes)
    _allowed(detector.explain)
    repr(detector)
    detector.save(path.with_suffix(".again"))
    if law is rows:
        _allowed(lambda: _step_of_a_bank(detector))


def _watch(path: Path, *options: str) -> None:
    """As the command does: it goes on where it was, and tells what could not be told."""
    stream = str(path.parent / "stream.csv")
    done = CliRunner().invoke(app, ["watch", str(path), stream, "--save-state", "--exit-zero", *options])
    if isinstance(done.exception, SystemExit) or done.exception is None:
        if done.exit_code:
            raise InputError(done.stderr)
        return
    raise done.exception


def _allowed(call: Callable[[], object]) -> None:
    """It may refuse, and what comes next goes on."""
    with suppress(TocsinError):
        call()


def _step_of_a_bank(detector: Detector) -> None:
    bank = DetectorBank(detector, 2)
    for i in range(3):
        _must_be_finite(bank.update(rows(i, 2)))


def _must_be_finite(outcomes: Any) -> None:
    for outcome in outcomes:
        if math.isinf(outcome.statistic) or math.isinf(outcome.threshold):
            raise Broken(f"an outcome is infinite: {outcome}")


_FLEETS: dict[Path, Fleet] = {}


def _fleet(file: Path) -> Fleet:
    if file not in _FLEETS:
        _FLEETS[file] = Fleet(Detector.load(file), explain=True)
    return _FLEETS[file]


def _use_state(folder: Path, key: str, state: bytes) -> None:
    step = _fleet(folder / f"{STATES[key]}.tocsin").step(
        [key], [state], rows(6, 40, 0.5), np.zeros(40, np.int64), np.arange(70, 110)
    )
    for alarm in step.alarms:
        if not (math.isfinite(alarm.statistic) and math.isfinite(alarm.threshold)):
            raise Broken(f"an alarm is infinite: {alarm}")


# Altering


def _altered(rng: np.random.Generator, kind: str, path: Path) -> bytes:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    if kind == "zip":
        return _strange_zip(rng, members)
    for _ in range(1 + int(rng.integers(4) == 0)):
        ALTERATIONS[kind](rng, members)
    return _zipped(members.items())


def _zipped(members: Any, compression: int = zipfile.ZIP_STORED) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as archive:
        for name, member in members:
            archive.writestr(zipfile.ZipInfo(name), member, compression)
    return content.getvalue()


def _bytes(rng: np.random.Generator, members: Members) -> None:
    name = str(rng.choice(sorted(members)))
    content = bytearray(members[name])
    for _ in range(int(rng.integers(1, 4))):
        content[int(rng.integers(len(content)))] = int(rng.integers(256))
    members[name] = bytes(content)


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """All places in a description: what holds a value, and where."""
    pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in pairs:
        yield node, key
        yield from _places(value)


def _in_description(change: Callable[[np.random.Generator, Any, Any], None], numbers: bool = False) -> Any:
    def alter(rng: np.random.Generator, members: Members) -> None:
        description = json.loads(members["tocsin.json"])
        places = [
            (holder, key)
            for holder, key in _places(description)
            if not numbers or (isinstance(holder[key], int | float) and not isinstance(holder[key], bool))
        ]
        change(rng, *places[int(rng.integers(len(places)))])
        members["tocsin.json"] = json.dumps(description).encode()

    return alter


def _number(rng: np.random.Generator, holder: Any, key: Any) -> None:
    value = holder[key]
    near: tuple[float, ...] = (value + 1, value - 1, 2 * value, -value, value * 1000)
    chosen = (*NASTY, *near)
    holder[key] = chosen[int(rng.integers(len(chosen)))]


def _type(rng: np.random.Generator, holder: Any, key: Any) -> None:
    holder[key] = OTHERS[int(rng.integers(len(OTHERS)))]


def _deleted(rng: np.random.Generator, holder: Any, key: Any) -> None:
    del holder[key]


def _added(rng: np.random.Generator, holder: Any, key: Any) -> None:
    if isinstance(holder, list):
        holder.insert(int(key), holder[key])
    else:
        holder[str(rng.choice(["x", "$array", "$class", "items", "fields", "position", "kind"]))] = holder[key]


def _spare(rng: np.random.Generator, members: Members) -> None:
    """Arrays have no place of their own in a description: one may stand for anything."""
    name = len(members) - 1
    content = io.BytesIO()
    spare: tuple[Array, ...] = (np.arange(3.0), np.ones((2, 2)), np.array(1), np.zeros((0, 2)), np.array([True, False]))
    np.save(content, spare[int(rng.integers(len(spare)))])
    members[f"{name}.npy"] = content.getvalue()

    def put(rng: np.random.Generator, holder: Any, key: Any) -> None:
        holder[key] = {"$array": name}

    _in_description(put)(rng, members)


def _in_array(change: Callable[[np.random.Generator, Array], Array]) -> Any:
    def alter(rng: np.random.Generator, members: Members) -> None:
        name = str(rng.choice([name for name in sorted(members) if name.endswith(".npy")]))
        array = change(rng, np.load(io.BytesIO(members[name])))
        content = io.BytesIO()
        np.save(content, array)
        members[name] = content.getvalue()

    return alter


def _element(rng: np.random.Generator, array: Array) -> Array:
    array = array.copy()
    if array.size:
        values = np.array(NASTY, dtype=object)
        for _ in range(int(rng.integers(1, 4))):
            value = values[int(rng.integers(len(values)))]
            if array.dtype.kind in "iu":
                bounds = np.iinfo(array.dtype)
                value = 0 if value != value else int(min(max(value, bounds.min), bounds.max))
            with np.errstate(all="ignore"):
                array.flat[int(rng.integers(array.size))] = float(value) if array.dtype.kind == "f" else value
    return array


def _shape(rng: np.random.Generator, array: Array) -> Array:
    changes: list[Callable[[], Array]] = [
        lambda: array[:-1],
        lambda: array[:0],
        lambda: np.concatenate([array, array]),
        lambda: array.T.copy(),
        lambda: array.ravel(),
        lambda: array[..., None],
        lambda: array[None],
        lambda: array[..., :1],
        lambda: np.asfortranarray(array),
        lambda: np.zeros(()),
    ]
    return changes[int(rng.integers(len(changes)))]() if array.ndim else array[None]


def _dtype(rng: np.random.Generator, array: Array) -> Array:
    with np.errstate(all="ignore"):
        kind = KINDS[int(rng.integers(len(KINDS)))]
    return array if array.dtype.kind == "U" else array.astype(kind)  # text of an alteration before is no number


def _swapped(rng: np.random.Generator, members: Members) -> None:
    names = [name for name in sorted(members) if name.endswith(".npy")]
    first, second = rng.choice(names, 2, replace=len(names) < 2)
    members[first], members[second] = members[second], members[first]


ALTERATIONS: dict[str, Callable[[np.random.Generator, Members], None]] = {
    "bytes": _bytes,
    "number": _in_description(_number, numbers=True),
    "type": _in_description(_type),
    "deleted": _in_description(_deleted),
    "added": _in_description(_added),
    "spare": _spare,
    "element": _in_array(_element),
    "shape": _in_array(_shape),
    "dtype": _in_array(_dtype),
    "swapped": _swapped,
    "zip": lambda rng, members: None,
}


def _header(shape: str, kind: str = "<f8") -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text = text.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def _strange_zip(rng: np.random.Generator, members: Members) -> bytes:
    """What is no alteration of a member."""
    chosen = int(rng.integers(15))
    json_ = members["tocsin.json"]
    if chosen == 0:
        return _zipped({**members, "0.npy": _header("(100000000,)") + bytes(800_000_000 >> 3)}.items(), 8)
    if chosen == 1:
        return _zipped(members.items(), int(rng.choice([8, 12, 14])))
    if chosen == 2:
        return _zipped([*members.items(), ("0.npy", members["0.npy"])])
    if chosen == 3:
        return _zipped([*members.items(), ("../../evil", b"x"), ("/etc/x", b"y")])
    if chosen == 4:
        members["0.npy"] = _header(
            str(rng.choice(["(1000000000000,)", "(99999999999999999999,)", "(-1,)", "(0, 9e9)"]))
        )
    if chosen == 5:
        members["0.npy"] = _header("(3,)", str(rng.choice(["|O", "<f8,", "V9", "<f16", "|S7", "<M8[s]"]))) + bytes(64)
    if chosen == 6:
        depth = int(rng.choice([99, 101, 1000, 100_000]))
        members["tocsin.json"] = json_[:-1] + b', "deep": ' + b"[" * depth + b"]" * depth + b"}"
    if chosen == 7:
        members["tocsin.json"] = json_[:-1] + b', "many": [' + b"[]," * int(rng.choice([10**4, 10**6])) + b"0]}"
    if chosen == 8:
        members["tocsin.json"] = json_[:-1] + b', "long": "' + b"x" * 10**6 + b'"}'
    if chosen == 9:
        members["tocsin.json"] = json_[:-1] + b', "big": ' + b"9" * int(rng.choice([400, 5000])) + b"}"
    if chosen == 10:
        return _zipped([(f"{i}.npy", b"") for i in range(int(rng.choice([1000, 60_000])))])
    if chosen == 11:
        members["0.npy"] = _header("(" + "1, " * int(rng.choice([20, 60, 1000])) + ")") + bytes(8)
    if chosen == 12:
        return _zipped(members.items())[:-2] + b"\x05\x00hello"
    if chosen == 13:
        del members[str(rng.choice(sorted(members)))]
    if chosen == 14:
        part = str(rng.choice(["more", "source", "options", "names", "fitted"]))  # the last of a name counts
        members["tocsin.json"] = json_[:-1] + f', "{part}": '.encode() + _heavy(rng) + b"}"
    return _zipped(members.items())


def _heavy(rng: np.random.Generator) -> bytes:
    """What takes much more memory than place in a file."""
    many, long = int(rng.choice([10**5, 499_000, 10**6])), b"a" * int(rng.choice([10**5, 5 * 10**6, 2 * 10**7]))
    chosen = int(rng.integers(7))
    if chosen == 0:
        return b'{"items": {' + b", ".join(b'"%x": 1.5' % i for i in range(many)) + b"}}"
    if chosen == 1:
        return b"[" + b", ".join(b'"%07x"' % i for i in range(many)) + b"]"
    if chosen == 2:
        return b'"' + long + b'\\ud83d\\ude00"'
    if chosen == 3:
        return b'"' + long + "\U0001f600".encode() + b'"'
    if chosen == 4:
        return b'{"items": {"' + long + b'": ' + b'{"items": {"a": ' * 45 + b"0" + b"}}" * 45 + b"}}"
    if chosen == 5:
        return b"[" + b", ".join([b'{"items": {"a": {"$tuple": []}}}'] * (many // 10)) + b"]"
    return b'["\\u0100", "' + b"\\\\" * (len(long) // 2) + b'"]'


def _damaged(rng: np.random.Generator, content: bytes) -> bytes:
    damaged = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        # Headers are where it hurts most.
        end = rng.integers(2) == 0
        place = len(damaged) - 1 - int(rng.integers(min(400, len(damaged)))) if end else int(rng.integers(len(damaged)))
        damaged[place] = int(rng.integers(256))
    return bytes(damaged[: int(rng.integers(len(damaged)))] if rng.integers(4) == 0 else damaged)


def _altered_state(rng: np.random.Generator, state: bytes) -> bytes:
    """Another state, three times in four with a checksum that is right."""
    damaged = bytearray(state)
    for _ in range(int(rng.integers(1, 4))):
        near = int(rng.integers(70)) if rng.integers(2) else int(rng.integers(len(damaged)))
        damaged[min(near, len(damaged) - 1)] = int(rng.choice([0, 1, 127, 128, 255, int(rng.integers(256))]))
    if rng.integers(4):
        damaged[2:6] = crc32(damaged[6:]).to_bytes(4, "little")
    return bytes(damaged if rng.integers(8) else damaged[: int(rng.integers(len(damaged)))])
