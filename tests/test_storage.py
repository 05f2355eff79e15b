"""The `.tocsin` file: read whole or refused with an explanation, written whole or not at all, running no code."""

from __future__ import annotations

import contextlib
import json
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, fields
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backends import needs_torch
from tocsin import (
    LSDD,
    MMD,
    Blocks,
    Custom,
    Detector,
    DetectorBank,
    Gaussian,
    Independent,
    InputError,
    MeanShift,
    StorageError,
)
from tocsin._compute.arrays import Array
from tocsin._detector import storage
from tocsin._detector.base import altered

pytestmark = pytest.mark.usefixtures("quick_fits")

ROWS = np.random.default_rng(0).normal(size=(40, 2))
STREAM = np.random.default_rng(1).normal(size=(30, 2))
WORDS = ["".join(letters) for letters in np.random.default_rng(2).choice(list("abcdef"), (40, 3))]


def shared_letters(X: list[str], Y: list[str]) -> Array:
    """A kernel on words."""
    return np.array([[len(set(x) & set(y)) for y in Y] for x in X], dtype=np.float64).reshape(len(X), len(Y))


def fitted(statistic: Any = None, reference: Any = ROWS, **options: Any) -> Detector:
    """A quick fit."""
    defaults = {
        "ert": 30,
        "statistic": statistic,
        "window": 5,
        "paths": 600,
        "seed": 1,
        "sampler": Independent(),
    }
    return Detector(**{**defaults, **options}).fit(reference)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A detector in the middle of a stream."""
    detector = fitted([MMD(Gaussian()), MeanShift()])
    detector.update_many(STREAM[:7])
    detector.save(tmp_path / "good.tocsin")
    return tmp_path / "good.tocsin"


def goes_on(path: Path, statistic: Any = None, stream: Any = STREAM) -> list[str]:
    """The outcomes of a loaded detector, to be compared bit for bit."""
    return [repr(outcome) for outcome in Detector.load(path, statistic=statistic).update_many(stream)]


# Damage


def test_truncated(file: Path) -> None:
    """A file that was cut short is refused, wherever it was cut."""
    whole = file.read_bytes()
    for length in [*range(0, 200, 7), *np.linspace(200, len(whole) - 1, 60).astype(int).tolist()]:
        file.write_bytes(whole[:length])
        with pytest.raises(StorageError, match=r"good\.tocsin is not a whole \.tocsin file.*fit the detector again"):
            Detector.load(file)


@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_flipped_byte(file: Path, flip: int) -> None:
    """A file with one wrong byte is refused, or the byte meant nothing (a date, say): never another detector."""
    whole, expected = file.read_bytes(), goes_on(file)
    headers = [*range(60), *range(len(whole) - 300, len(whole))]
    anywhere = np.random.default_rng(flip).integers(0, len(whole), 60).tolist()
    refused = 0
    for place in [*headers, *anywhere]:
        damaged = bytearray(whole)
        damaged[place] ^= flip
        file.write_bytes(damaged)
        try:
            assert goes_on(file) == expected, f"byte {place}"
        except StorageError:
            refused += 1
    assert refused > 150


def test_appended(file: Path) -> None:
    """Something after the end of the file is no reason to read another detector."""
    expected = goes_on(file)
    file.write_bytes(file.read_bytes() + b"\n")
    with contextlib.suppress(StorageError):
        assert goes_on(file) == expected


# Foreign files


def _zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


FOREIGN: dict[str, bytes | dict[str, bytes]] = {
    "empty": b"",
    "text": b"time,flow\n1,2\n",
    "binary": bytes(range(256)) * 20,
    "empty zip": {},
    "other zip": {"a.txt": b"hello"},
    "zip with our name": {"tocsin.json": b"hello"},
    "JSON that is not ours": {"tocsin.json": b'{"format": "other", "version": 2}'},
    "JSON without a format": {"tocsin.json": b"{}"},
    "JSON that is a list": {"tocsin.json": b"[1, 2]"},
    "JSON without a version": {"tocsin.json": b'{"format": "tocsin"}'},
    "version in words": {"tocsin.json": b'{"format": "tocsin", "version": "one"}'},
    "JSON that is not UTF-8": {"tocsin.json": b"\xff\xfe\xff"},
    "nothing but a header": {"tocsin.json": b'{"format": "tocsin", "version": 2}'},
    "an array that is none": {"tocsin.json": b'{"format": "tocsin", "version": 2}', "0.npy": b"hello"},
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_foreign_files(content: bytes | dict[str, bytes], tmp_path: Path) -> None:
    """Something else is refused as what it is."""
    path = tmp_path / "foreign.tocsin"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        _zip(path, content)
    with pytest.raises(StorageError, match=r"foreign\.tocsin"):
        Detector.load(path)


class Exploit:
    """Unpickling this would make a file."""

    def __init__(self, made: Path) -> None:
        self.made = made

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.made,)


def test_no_pickle(file: Path) -> None:
    """An array of objects would have to be unpickled, which runs code: refused."""
    made, array = file.parent / "made", file.parent / "objects.npy"
    np.save(array, np.array([Exploit(made)], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with pytest.raises(StorageError, match="not a whole"):
        Detector.load(_zip(file, {**members, "0.npy": array.read_bytes()}))
    assert not made.exists()
    np.load(array, allow_pickle=True)
    assert made.exists(), "the exploit itself works"


def _rewrite(path: Path, change: dict[str, Any]) -> None:
    """Change the description of a file."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["tocsin.json"] = json.dumps({**json.loads(members["tocsin.json"]), **change}).encode()
    _zip(path, members)


def test_newer_version(file: Path) -> None:
    """A file of a later format says so, and is not said to be damaged."""
    _rewrite(file, {"version": storage.VERSION + 1})
    with pytest.raises(StorageError, match=rf"version {storage.VERSION + 1} .* reads up to {storage.VERSION}. Upgrade"):
        Detector.load(file)


def test_older_version(file: Path) -> None:
    """What an earlier format held is not enough to go on with, and the remedy is told."""
    _rewrite(file, {"version": 2})
    with pytest.raises(
        StorageError, match=rf"earlier Tocsin.* reads version {storage.VERSION}. Fit the detector again"
    ):
        Detector.load(file)


@pytest.mark.parametrize("part", ["options", "names", "statistic", "fitted", "live", "run"])
def test_a_part_is_missing(file: Path, part: str) -> None:
    """A file with a hole in it is refused too."""
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    description = json.loads(members["tocsin.json"])
    del description[part]
    members["tocsin.json"] = json.dumps(description).encode()
    with pytest.raises(StorageError, match=r"good\.tocsin"):
        Detector.load(_zip(file, members))


def _as_version_4(description: dict[str, Any]) -> None:
    options = description["options"]["items"]
    options["calibration"] = options.pop("mode")
    fitted = description["fitted"]["items"]
    del options["reset_on_alarm"], fitted["resets"], fitted["hears"]
    for name in ("left", "heard"):
        description.get("run", {"items": {}})["items"].pop(name, None)


def test_version_4_goes_on(tmp_path: Path) -> None:
    """Of a detector, and of a bank with a promise for all of its streams."""
    bank = DetectorBank(altered(fitted(), hears=False), 3, ert=250, for_all=3)
    both: dict[str, Detector | DetectorBank] = {"detector": bank.detector, "bank": bank}
    for name, saved in both.items():
        saved.save(tmp_path / name)
        with zipfile.ZipFile(tmp_path / name) as archive:
            members = {member: archive.read(member) for member in archive.namelist()}
        description = json.loads(members["tocsin.json"])
        _as_version_4(description)
        if name == "bank":
            own = description["bank"]["items"]
            own["ert_bank"] = own.pop("ert")
            del own["for_all"]
        members["tocsin.json"] = json.dumps({**description, "version": 4}).encode()
        old = type(saved).load(_zip(tmp_path / "old", members))
        np.testing.assert_array_equal(old.thresholds_, saved.thresholds_)
        assert repr(old) == repr(saved)


def test_version_3_goes_on(tmp_path: Path) -> None:
    """Its state stood among what `fit` makes: the same outcomes, from where it was saved."""
    file, saved = tmp_path / "good.tocsin", fitted([MMD(Gaussian()), MeanShift()], start="cold")
    saved = altered(saved, hears=False)
    saved.update_many(STREAM[:7])
    saved.save(file)
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    description = json.loads(members["tocsin.json"])
    run = description.pop("run")["items"]
    assert run.pop("left") is None
    assert run.pop("heard") is None
    description["state"] = {"items": {str(i): state for i, state in enumerate(run.pop("windows"))}}
    description["live"] = {"items": {str(i): parts for i, parts in enumerate(description["live"])}}
    description["fitted"]["items"] |= {**run, "run": run.pop("number"), "stream": 0}
    del description["fitted"]["items"]["number"]
    _as_version_4(description)
    members["tocsin.json"] = json.dumps({**description, "version": 3}).encode()
    new = Detector.load(file)
    old = Detector.load(_zip(file.with_name("old.tocsin"), members))
    rows = np.random.default_rng(3).normal(0.5, size=(30, new.reference_.shape[1]))
    assert (old.time, old.run, old.alarm) == (new.time, new.run, new.alarm)
    np.testing.assert_array_equal(old.recent, new.recent)
    np.testing.assert_array_equal(old.update_many(rows).statistic, new.update_many(rows).statistic)


def test_an_unknown_class(file: Path) -> None:
    """A file that names a class of its own, of another library or a later version, is refused."""
    _rewrite(file, {"statistic": {"$class": "Exploit", "fields": {}}})
    with pytest.raises(StorageError, match=r"good\.tocsin"):
        Detector.load(file)


def test_no_such_file(tmp_path: Path) -> None:
    """A missing file is named."""
    with pytest.raises(StorageError, match=r"There is no file .*missing\.tocsin"):
        Detector.load(tmp_path / "missing.tocsin")
    with pytest.raises(StorageError, match=r"Cannot read .*Is a directory"):
        Detector.load(tmp_path)


# Writing


def test_no_such_folder(tmp_path: Path) -> None:
    """A folder that does not exist is named, and not made."""
    with pytest.raises(StorageError, match=r"Cannot write .*nowhere.a\.tocsin: No such file or directory"):
        fitted().save(tmp_path / "nowhere" / "a.tocsin")
    assert not list(tmp_path.iterdir())


def test_the_target_is_a_folder(tmp_path: Path) -> None:
    """A folder is not replaced by a file."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match=r"Cannot write .*folder"):
        fitted().save(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


FAILURES = {"disk": OSError(28, "No space left on device"), "interrupt": KeyboardInterrupt()}


@pytest.mark.parametrize(
    "name", ["a\0b.html", "a\ud800.html", "a" * 300 + ".html"], ids=["NUL", "a lone surrogate", "long"]
)
def test_names_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    """Whatever writes says so, in words."""
    detector, bank = fitted(), DetectorBank(fitted(), 2)
    for save in (detector.save, bank.save):
        with pytest.raises(StorageError, match=r"Cannot write '.*Choose another"):
            save(tmp_path / name)
    with pytest.raises(InputError, match=r"Cannot write '.*Choose another"):
        detector.report(STREAM, tmp_path / name)
    with pytest.raises(StorageError):
        Detector.load(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_options_that_are_arrays(tmp_path: Path) -> None:
    """They are options like any other."""
    detector = fitted(window=np.array([4, 6]))
    detector.save(tmp_path / "a.tocsin")
    for each in (detector, Detector.load(tmp_path / "a.tocsin")):
        assert "window=array([4, 6])" in repr(each)
        assert each.windows_ == (4, 6)


def test_a_link_of_the_users_own(tmp_path: Path) -> None:
    """To a file: that is replaced. To nothing: somebody may have put it there to have something written."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to("disk/a.tocsin")
    with pytest.raises(StorageError, match=r"it is a link to disk/a\.tocsin, which is not there"):
        fitted().save(tmp_path / "link")
    fitted().save(tmp_path / "disk" / "a.tocsin")
    fitted(seed=99).save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert Detector.load(tmp_path / "disk" / "a.tocsin").seed_ == 99


@pytest.mark.parametrize("where", ["array", "sync", "rename"])
@pytest.mark.parametrize("error", FAILURES.values(), ids=FAILURES)
def test_a_failure_midway_leaves_the_old_file(
    file: Path, where: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old file stays as it was, and nothing else is left behind; a full disk is a `StorageError`."""
    before, detector = file.read_bytes(), fitted()

    def fail(*_: Any, **__: Any) -> None:
        raise error

    names = {"array": "numpy.lib.format.write_array", "sync": "os.fsync", "rename": "os.replace"}
    monkeypatch.setattr(names[where], fail)
    expected = StorageError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected, match="No space left" if isinstance(error, OSError) else None):
        detector.save(file)
    monkeypatch.undo()
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_saving_again_replaces(file: Path) -> None:
    """The new file is the new detector."""
    detector = fitted(LSDD(centres=4))
    detector.save(file)
    assert goes_on(file) == [repr(outcome) for outcome in detector.update_many(STREAM)]


def test_paths_in_any_form(file: Path) -> None:
    """Strings and path objects."""
    os.chdir(file.parent)
    for path in (str(file), file, file.name):
        assert Detector.load(path).time == 7
        Detector.load(path).save(path)


@pytest.fixture(autouse=True)
def _stay_here() -> Iterator[None]:
    here = Path.cwd()
    yield
    os.chdir(here)


# What a file holds


@pytest.mark.parametrize(
    "options",
    [
        {"statistic": MMD()},
        {"statistic": MMD(Gaussian(width=(1, 2)))},
        {"statistic": LSDD(centres=4, regularisation=0.5)},
        {"statistic": MeanShift(direction=(1.0, 2.0))},
        {"statistic": [MMD(Gaussian()), LSDD()]},
        {"start": "cold", "mode": "paper"},
        {"backend": "numpy", "error": 0.5, "paths": 60},
        pytest.param({"backend": "torch", "device": "cpu"}, marks=needs_torch),
        {"sampler": "auto", "interval": False, "statistic": MMD()},
        {"sampler": Blocks(4, 2), "guarantee": 0.6},
        {"sampler": Blocks(guard=1)},
    ],
    ids=str,
)
def test_options_come_back(options: dict[str, Any], tmp_path: Path) -> None:
    """A loaded detector has the options of the saved one, and can be fitted again to the same result."""
    detector = fitted(**options)
    detector.save(tmp_path / "a.tocsin")
    loaded = Detector.load(tmp_path / "a.tocsin")
    assert repr(loaded) == repr(detector)
    names = list(signature(Detector).parameters)
    assert len(names) == 20
    assert {name: getattr(loaded, name) for name in names} == {name: getattr(detector, name) for name in names}
    assert loaded.fit(ROWS).thresholds_.tolist() == detector.thresholds_.tolist()


@pytest.mark.parametrize(
    "options",
    [{}, {"guarantee": 0.6, "ert": 1e4}, {"sampler": Blocks(4, 2)}, {"interval": False}, {"mode": "fixed"}],
    ids=str,
)
def test_all_of_a_calibration_comes_back(options: dict[str, Any], tmp_path: Path) -> None:
    """To the last bit: the curve of rarities and its tail, errors by cause, and how streams were drawn."""
    detector = fitted(**options)
    detector.save(tmp_path / "a.tocsin")
    before, after = detector.calibration_, Detector.load(tmp_path / "a.tocsin").calibration_
    for field in fields(before):
        if field.name not in ("curve", "thresholds"):
            assert repr(getattr(after, field.name)) == repr(getattr(before, field.name)), field.name
    assert after.thresholds.tolist() == before.thresholds.tolist()
    assert after.curve is not None
    assert before.curve is not None
    assert after.curve.values.tolist() == before.curve.values.tolist()
    assert after.curve.log_rates.tolist() == before.curve.log_rates.tolist()
    assert repr(after.curve.tail) == repr(before.curve.tail)
    assert after.curve.tail.errors.tolist() == before.curve.tail.errors.tolist()
    assert after.interval() == before.interval()
    assert after.points_to_halve == before.points_to_halve


def test_groups_come_back(tmp_path: Path) -> None:
    """Warm starts are drawn from within them, by a detector that is loaded too."""
    groups = np.repeat(["a", "b"], [15, 25])
    options: dict[str, Any] = {"ert": 30, "window": 5, "sampler": Blocks(4, 2), "paths": 600, "seed": 1}
    detector = Detector(**options).fit(ROWS, groups=groups)
    detector.save(tmp_path / "a.tocsin")
    loaded = Detector.load(tmp_path / "a.tocsin")
    for each in (detector, loaded):
        assert each._fitted is not None
        assert each._fitted.edges is not None
        assert each._fitted.edges.tolist() == [0, 15, 40]
    for _ in range(3):
        for each in (detector, loaded):
            each.reset()
        assert repr(loaded.update(STREAM[0])) == repr(detector.update(STREAM[0]))


def test_the_alarm_comes_back(tmp_path: Path) -> None:
    """With its time, its rarity and the channel that spoke."""
    detector = fitted()
    detector.update_many(STREAM + 5)
    detector.save(tmp_path / "a.tocsin")
    assert detector.alarm is not None
    assert detector.alarm.rarity > 10
    assert Detector.load(tmp_path / "a.tocsin").alarm == detector.alarm


@dataclass(frozen=True)
class Purchase:
    """An observation of a user's own type."""

    price: float


def price_gap(X: list[Any], Y: list[Any]) -> float:
    """A distance between samples of observations that have a price somewhere."""

    def prices(sample: list[Any]) -> float:
        return float(np.mean([x["price"] if isinstance(x, dict) else x[0] for x in sample]))

    return abs(prices(X) - prices(Y))


PRICES = ROWS[:, 0].tolist()
OBJECTS: dict[str, tuple[Any, list[Any]]] = {
    "words": (MMD(shared_letters), WORDS),
    "dicts": (Custom(price_gap), [{"price": x, "shop": None, "tags": ["a", {"b": True}]} for x in PRICES]),
    "awkward dicts": (Custom(price_gap), [{"price": x, "$array": 0, "items": {}, "$class": "MMD"} for x in PRICES]),
    "lists": (Custom(price_gap), [[x, "a"] for x in PRICES]),
    "tuples": (Custom(price_gap), [(x, "a") for x in PRICES]),
    "arrays": (Custom(price_gap), [np.arange(3 + i % 2) + x for i, x in enumerate(PRICES)]),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_come_back(name: str, tmp_path: Path) -> None:
    """References of strings, dicts, lists and arrays; the function is given again."""
    statistic, reference = OBJECTS[name]
    detector = fitted(statistic, reference)
    detector.update_many(reference[:8])
    detector.save(tmp_path / "a.tocsin")
    loaded = Detector.load(tmp_path / "a.tocsin", statistic=statistic)
    assert loaded._fitted is not None
    assert [type(x) for x in loaded._fitted.reference] == [type(x) for x in reference]
    assert str(loaded._fitted.reference) == str(reference)
    assert goes_on(tmp_path / "a.tocsin", statistic, reference) == [repr(o) for o in detector.update_many(reference)]


@pytest.mark.parametrize("statistic", [MMD(shared_letters), Custom(lambda X, Y: abs(len(X[0]) - len(Y[-1])))])
def test_functions_must_be_given_again(statistic: Any, tmp_path: Path) -> None:
    """No file can hold them; the error names the function and says how to go on."""
    fitted(statistic, WORDS).save(tmp_path / "a.tocsin")
    with pytest.raises(StorageError, match=r"a\.tocsin was made with a function .*Detector\.load\(path, statistic="):
        Detector.load(tmp_path / "a.tocsin")
    assert goes_on(tmp_path / "a.tocsin", statistic, WORDS)


@dataclass(frozen=True)
class Overlap:
    """A kernel that is an object."""

    power: float = 1.0

    def __call__(self, X: list[str], Y: list[str]) -> Array:
        """The matrix of k(x, y)."""
        return np.asarray(shared_letters(X, Y) ** self.power)


def test_kernel_objects_must_be_given_again(tmp_path: Path) -> None:
    """The same for a kernel that is an object, even a dataclass."""
    fitted(MMD(Overlap()), WORDS).save(tmp_path / "a.tocsin")
    with pytest.raises(StorageError, match=r"Detector\.load\(path, statistic="):
        Detector.load(tmp_path / "a.tocsin")
    assert goes_on(tmp_path / "a.tocsin", MMD(Overlap()), WORDS)


def test_another_statistic_is_refused(tmp_path: Path) -> None:
    """A statistic that the detector was not fitted with cannot go on in its place."""
    fitted(MMD(shared_letters), WORDS).save(tmp_path / "words.tocsin")
    fitted().save(tmp_path / "rows.tocsin")
    with pytest.raises(InputError, match=r"words\.tocsin was fitted with \['MMD'\], and \['Custom'\] are given"):
        Detector.load(tmp_path / "words.tocsin", statistic=Custom(price_gap))
    with pytest.raises(StorageError, match=r"fitted with a kernel function .*statistic=MMD\(kernel=\.\.\.\)"):
        Detector.load(tmp_path / "words.tocsin", statistic=MMD(Gaussian()))
    with pytest.raises(InputError, match=r"rows\.tocsin was fitted with \['MMD'\], and \['MMD', 'LSDD'\] are given"):
        Detector.load(tmp_path / "rows.tocsin", statistic=[MMD(), LSDD()])


UNWRITABLE: dict[str, Any] = {
    "an own class": [Purchase(x) for x in PRICES],
    "sets": [{x} for x in PRICES],
    "bytes": [bytes([i]) for i in range(40)],
    "complex numbers": [complex(x) for x in PRICES],
    "dicts with other keys": [{1: x} for x in PRICES],
    "arrays of objects": [np.array([{}, x], dtype=object) for x in PRICES],
}


@pytest.mark.parametrize("name", UNWRITABLE)
def test_observations_that_no_file_can_hold(name: str, tmp_path: Path) -> None:
    """They are refused when saving, not found out about when loading; nothing is written."""
    detector = fitted(Custom(lambda X, Y: float(len(X) + len(Y))), UNWRITABLE[name])
    with pytest.raises(StorageError, match="cannot be written to a file"):
        detector.save(tmp_path / "a.tocsin")
    assert not list(tmp_path.iterdir())
