"""A few hundred files that mean harm, with seeds; `python -m benchmarks.hostile files` makes thousands."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.hostile_tries import SPARE, TIMES, attacked
from typer.testing import CliRunner, Result

from tocsin import MMD, Detector, DetectorBank, Gaussian, MeanShift, StorageError, Views
from tocsin._cli import app
from tocsin._data.tables import Column, Columns
from tocsin._detector import schema, storage
from tocsin._detector.declared import FIELDS

ROWS = np.random.default_rng(0).normal(size=(60, 2))


@pytest.mark.long
def test_files_and_states_that_mean_harm() -> None:
    """They work, or are refused in words: none crashes, none gives another error, none takes much memory."""
    tallies = attacked("benchmarks.hostile_files", 400, seed=17)
    assert not [line for tally in tallies.values() for line in tally.worst]
    assert sum(tally.tries for tally in tallies.values()) == 400
    assert sum(tally.worked for tally in tallies.values()) > 40, "some alterations mean nothing"
    assert sum(tally.clear for tally in tallies.values()) > 200
    assert len(tallies) == 13


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file of a detector in the middle of its stream."""
    path = tmp_path_factory.mktemp("file") / "good.tocsin"
    detector = Detector(30, [MMD(Gaussian()), MeanShift()], window=5, paths=400, seed=1).fit(ROWS)
    detector.update_many(ROWS[:7])
    detector.save(path)
    return path.read_bytes()


def test_what_a_watch_keeps(content: bytes, tmp_path: Path) -> None:
    """Alarms that are still to be told are what a watch makes, or the file is refused; what they say harms nobody."""
    path, stream, log = tmp_path / "d.tocsin", tmp_path / "s.csv", tmp_path / "alarms.jsonl"
    np.savetxt(stream, ROWS[:5], delimiter=",")
    channel = {"items": {"statistic": "MMD", "window": 5, "width": None}}
    facts = {"event": "alarm", "id": "a", "detector": "d", "stream": "s", "timestamp": "t", "row": 1, "run_length": 1}
    values = {"statistic": 2.0, "threshold": 1.0, "rarity": None, "channel": channel, "text": "x\ud800\x1b[2J rang"}
    good: dict[str, Any] = {**facts, **values, "explanation": {"items": {"time": 1, "words": ["x", {"items": {}}]}}}

    def watch(alarm: dict[str, Any], *ways: object, header: str | None = None) -> Result:
        waiting = {"items": {"alarm": {"items": alarm}, "ways": list(ways)}}
        place = {
            "path": str(stream), "inode": 1, "offset": 0, "line": 0, "rows": 0, "header": header, "begun": True,
            "head": "", "known": 0, "tail": "", "whole": True,
        }  # fmt: skip
        source = {"items": {"places": [{"items": place}] if header else [], "waiting": [waiting]}}
        path.write_bytes(altered(content, lambda description, _: description.update(source=source)))
        command = ["watch", str(path), str(stream), "--alarms", str(log), "--on-alarm", f"cat >> {tmp_path}/acted"]
        return CliRunner().invoke(app, command)

    worked = watch(good, "output", "file", "action")
    assert (worked.exit_code, worked.exception, worked.stdout[:23]) == (0, None, "ALARM before: x[2J rang")
    told = [json.loads(text) for text in (log.read_text(), (tmp_path / "acted").read_text())]
    assert [alarm["id"] for alarm in told] == ["a", "a"]
    bad: list[dict[str, Any]] = [{name: good[name] for name in good if name != left_out} for left_out in values]
    bad += [{**good, "row": "1"}, {**good, "text": ["x"]}, {**good, "a=b": 1}, {**good, "id": 3}]
    strange = [{"$array": 0}, {"$class": "MeanShift", "fields": {"direction": None}}]
    bad += [{**good, "explanation": {"items": {"values": [one]}}} for one in strange]
    results = [watch(alarm, "output") for alarm in bad]
    results += [watch(good, "telephone"), watch(good, "output", header="x\ud800")]
    for result in results:
        assert (result.exit_code, type(result.exception), result.stdout) == (2, SystemExit, "")
        assert "is not a whole .tocsin file" in result.stderr


def altered(content: bytes, change: Callable[[dict[str, Any], dict[str, bytes]], None]) -> bytes:
    """With another description, or other members."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    description = json.loads(members["tocsin.json"])
    change(description, members)
    members.setdefault("tocsin.json", b"")
    if members["tocsin.json"]:
        members["tocsin.json"] = json.dumps(description).encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return made.getvalue()


def refused(tmp_path: Path, content: bytes, match: str) -> None:
    """By the name of the file, and what is wrong."""
    (tmp_path / "bad.tocsin").write_bytes(content)
    with pytest.raises(StorageError, match=rf"(?s)bad\.tocsin.*{match}"):
        Detector.load(tmp_path / "bad.tocsin")


def npy(array: Any) -> bytes:
    """As a member."""
    made = io.BytesIO()
    np.save(made, array)
    return made.getvalue()


@pytest.mark.parametrize("position", [-1, 3, 21, 2**31, 2**62, -(2**63)])
@pytest.mark.parametrize("statistic", [0, 1])
def test_a_position_outside_of_its_window(tmp_path: Path, content: bytes, position: int, statistic: int) -> None:
    """It went straight into compiled code."""

    def change(description: dict[str, Any], members: dict[str, bytes]) -> None:
        windows = description["run"]["items"]["windows"][statistic]["items"]
        members[f"{windows['position']['$array']}.npy"] = npy(np.array([position]))

    refused(tmp_path, altered(content, change), rf"run\.windows\[{statistic}\]\.position is ")


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("fitted", "windows", {"$tuple": [5, 10**9]}),
        ("fitted", "windows", {"$tuple": []}),
        ("fitted", "start", "hot"),
        ("fitted", "seed", -1),
        ("fitted", "rang", None),
        ("fitted", "strange", 1),
        ("run", "time", True),
        ("run", "number", 2**70),
        ("run", "windows", []),
        ("run", "left", []),
        ("run", "left", [{"items": {}}, {"items": {}}]),
        ("options", "ert", -4),
        ("options", "window", "x"),
        ("options", "backend", "evil"),
        ("options", "seed", "x"),
        ("options", "strange", 1),
        ("options", "kinds", {"items": {"a": "b"}}),
    ],
)
def test_a_value_that_cannot_be(tmp_path: Path, content: bytes, part: str, key: str, value: Any) -> None:
    """The error names the part."""

    def change(description: dict[str, Any], members: dict[str, bytes]) -> None:
        description[part]["items"][key] = value

    refused(tmp_path, altered(content, change), key)


@pytest.mark.parametrize("key", ["kind", "names", "statistic", "options", "fitted", "live", "run", "version", "format"])
@pytest.mark.parametrize("array", [np.arange(3.0), np.array(1), np.zeros((0, 2))])
def test_an_array_in_the_place_of_something_else(tmp_path: Path, content: bytes, key: str, array: Any) -> None:
    """Arrays answer to == with an array."""

    def change(description: dict[str, Any], members: dict[str, bytes]) -> None:
        spare = len(members) - 1
        members[f"{spare}.npy"] = npy(array)
        description[key] = {"$array": spare}

    refused(tmp_path, altered(content, change), key)


def test_a_clock_that_is_wrong(tmp_path: Path, content: bytes) -> None:
    """What is remembered is as much as there was."""

    def change(description: dict[str, Any], members: dict[str, bytes]) -> None:
        description["run"]["items"]["time"] = 6

    refused(tmp_path, altered(content, change), r"run\.recent is 7, and must be 6 points")


def test_members_that_grow(tmp_path: Path, content: bytes) -> None:
    """Compressed members, arrays larger than their bytes, and names that come twice."""

    def declared(shape: str) -> Callable[[dict[str, Any], dict[str, bytes]], None]:
        def change(description: dict[str, Any], members: dict[str, bytes]) -> None:
            text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
            members["0.npy"] = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(16)

        return change

    refused(tmp_path, altered(content, declared("(1000000000000,)")), "0.npy is 144 bytes, and must be a header and")
    refused(tmp_path, altered(content, declared("(-1,)")), "0.npy is ")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    for compression, more, match in (
        (zipfile.ZIP_DEFLATED, [], "compressed, and must be stored"),
        (zipfile.ZIP_STORED, [("x", b"")], "the list of members"),
        (zipfile.ZIP_STORED, [("0.npy", b"")], "the list of members"),
    ):
        made = io.BytesIO()
        with warnings.catch_warnings(), zipfile.ZipFile(made, "w", compression) as archive:
            warnings.simplefilter("ignore")  # zipfile's own, of names that come twice
            for name, member in [*members, *more]:
                archive.writestr(name, member)
        refused(tmp_path, made.getvalue(), match)


def test_descriptions_that_are_deep(tmp_path: Path, content: bytes) -> None:
    """So is the stack of whoever reads them."""

    def change(description: dict[str, Any], members: dict[str, bytes]) -> None:
        description["source"] = json.loads("[" * 200 + "]" * 200)

    refused(tmp_path, altered(content, change), "nested 20. deep")


MANY = 499_000

HEAVY: dict[str, Callable[[], bytes]] = {
    "names": lambda: b'{"items": {' + b", ".join(b'"%x": 1.5' % i for i in range(MANY)) + b"}}",
    "names of colons": lambda: b'{"items": {' + b",".join(b'":%x":":"' % i for i in range(MANY)) + b"}}",
    "names with room": lambda: b'{"items": {' + b", ".join(b'"%x" : 1.5' % i for i in range(MANY)) + b"}}",
    "lists": lambda: b"[" + b"[0], " * MANY + b"0]",
    "dicts": lambda: b"[" + b'{"items": {"a": 0}}, ' * (MANY // 4) + b"0]",
    "texts": lambda: b"[" + b", ".join(b'"%07x"' % i for i in range(MANY)) + b"]",
    "a wide text": lambda: b'"' + b"a" * 20_000_000 + b'\\ud83d\\ude00"',
    "a wide text as it is": lambda: b'"' + b"a" * 20_000_000 + "\U0001f600".encode() + b'"',
    "a long name": lambda: b'{"items": {"' + b"a" * 5_000_000 + b'":' + b'{"items": {"a": ' * 45 + b"0" + b"}}" * 46,
    "quotes": lambda: b'"' * 10_000_000,
    "wide and long texts": lambda: b'["\\ud83d\\ude00", ' + b", ".join([b'"%s"' % (b"a" * 10**6)] * 20) + b"]",
}

MEASURED = """
import sys
from benchmarks.hostile_tries import memory
from tocsin import Detector, StorageError
Detector.load(sys.argv[1])
before = memory()
try:
    Detector.load(sys.argv[2])
except StorageError as error:
    print(memory(peak=True) - before, error)
"""


@pytest.mark.parametrize("name", HEAVY)
def test_descriptions_that_grow(tmp_path: Path, content: bytes, name: str) -> None:
    """Values take many times their place in a file: those of many, and of small ones, are refused before they do."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "bad.tocsin", "w") as archive:
        for member, own in members.items():
            more = b', "options": ' + HEAVY[name]() + b"}" if member == "tocsin.json" else b""
            archive.writestr(member, own[:-1] + more if more else own)
    (tmp_path / "good.tocsin").write_bytes(content)
    call = [sys.executable, "-c", MEASURED, str(tmp_path / "good.tocsin"), str(tmp_path / "bad.tocsin")]
    grown, _, error = subprocess.run(call, capture_output=True, text=True, check=True).stdout.partition(" ")
    assert "bad.tocsin is not a whole .tocsin file" in error
    assert int(grown) < TIMES * (tmp_path / "bad.tocsin").stat().st_size + SPARE, error


def test_parts_that_no_file_has(tmp_path: Path, content: bytes) -> None:
    """They would be read for nobody."""

    def change(description: dict[str, Any], members: dict[str, bytes]) -> None:
        description["more"] = 1

    refused(tmp_path, altered(content, change), r"\['more'\], and must be without these")


def test_what_files_hold_that_are_large(tmp_path: Path) -> None:
    """As many objects as a kernel may have, wide tables, and long texts in all alphabets can be written and read."""
    record = {f"column {i}": [float(i), "red"][i % 2] for i in range(10)}
    reference = [{**record, "number": i} for i in range(20_000)]
    texts = ["\u0431\u0443\u043a\u0432\u044b " * 200 for _ in range(20_000)]
    columns = tuple(Column(f"column {i}", "numbers", "number", 0.0, 0.0, 1.0, 1.0, (), False) for i in range(15_000))
    for many in ([reference, reference], [texts, texts], [Columns(columns, ())]):
        storage.write(tmp_path / "a.tocsin", {"kind": "x", "fitted": many})
        assert storage.read(tmp_path / "a.tocsin", "x")["fitted"] == many


def test_what_could_not_be_read_is_not_written(tmp_path: Path) -> None:
    """The limits of reading are those of writing."""
    with pytest.raises(StorageError, match=r"cannot be written to a file: the description is of values"):
        storage.write(tmp_path / "a.tocsin", {"fitted": [[] for _ in range(500_000)]})
    assert not list(tmp_path.iterdir())


def test_a_bank_that_was_made_up(tmp_path: Path) -> None:
    """More streams than windows, and a ring's place outside of it."""
    bank = DetectorBank(Detector(30, MMD(), window=5, paths=400, seed=1).fit(ROWS), 2)
    bank.save(tmp_path / "good.tocsin")
    whole = (tmp_path / "good.tocsin").read_bytes()

    def streams(description: dict[str, Any], members: dict[str, bytes]) -> None:
        description["bank"]["items"]["streams"] = 10**9

    def position(description: dict[str, Any], members: dict[str, bytes]) -> None:
        windows = description["bank"]["items"]["windows"]["items"]
        members[f"{windows['position']['$array']}.npy"] = npy(np.array([0, 99]))

    for change, match in ((streams, r"bank\..*shape"), (position, r"bank\.windows\.position")):
        (tmp_path / "bad.tocsin").write_bytes(altered(whole, change))
        with pytest.raises(StorageError, match=rf"bad\.tocsin.*{match}"):
            DetectorBank.load(tmp_path / "bad.tocsin")


def test_every_class_declares_its_fields() -> None:
    """All of them, and no others."""
    for kind, rules in FIELDS.items():
        assert {own.name for own in fields(kind)} == set(rules), kind.__name__


def test_numbers_are_no_truth_values() -> None:
    """Python takes True for 1."""
    for rule in (schema.Number(), schema.Whole()):
        with pytest.raises(schema.Wrong):
            rule(True, "here")


# Views


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file of views in the middle of their stream."""
    path = tmp_path_factory.mktemp("views") / "good.tocsin"
    detector = Detector(30, Views(), window=(2, 5), paths=6, seed=1).fit(ROWS)
    detector.update_many(ROWS[:7])
    detector.save(path)
    return path.read_bytes()


VIEWED: dict[tuple[str, str], list[Any]] = {
    ("live", "chosen"): [[0, 0], [1, 0], [0, 2], []],
    ("live", "spread"): [[0.0, 1.0], [-1.0, 1.0]],
    ("live", "axes"): [np.ones((3, 1)), np.ones((2, 65))],
    ("live", "lags"): [np.ones((3, 2))],
    ("live", "sizes"): [np.zeros((4, 2)), np.ones((4, 3))],
    ("live", "unit"): [np.zeros(20), np.ones(19)],
    ("live", "past"): [np.zeros((10, 2))],
    ("live", "scale"): [np.zeros(20)],
    ("live", "owners"): [[0, 0], [1, 0], [0, 7]],
    ("state", "clock"): [[[6, 0]], [[-6, 0]], [[0, -1]], [[0, 2**63 - 1]], [0, 0]],
    ("state", "position"): [[-1], [3], [2**63 - 1]],
    ("state", "rows"): [np.zeros((1, 3, 2)), np.full((1, 22, 2), 32767)],
    ("state", "rests"): [np.zeros((1, 3, 2)), np.zeros((14, 2))],
    ("state", "sums"): [np.full((1, 21, 2), 1e200), np.zeros((1, 21, 2)), np.zeros((1, 20, 2))],
    ("state", "loud"): [-np.ones((1, 20)), np.full((1, 20), 1e200)],
    ("state", "scale"): [np.full((1, 20), 0.5), np.full((1, 20), np.nan), np.full((1, 20), np.inf)],
}
"""Arrays that views cannot have, and where."""


@pytest.mark.parametrize(("place", "value"), [(place, value) for place, values in VIEWED.items() for value in values])
def test_arrays_that_views_cannot_have(tmp_path: Path, views: bytes, place: tuple[str, str], value: Any) -> None:
    """What goes into compiled code: the error names it."""
    part, name = place

    def change(description: dict[str, Any], members: dict[str, bytes]) -> None:
        own = description["live"][0] if part == "live" else description["run"]["items"]["windows"][0]
        member = f"{own['items'][name]['$array']}.npy"
        before = np.load(io.BytesIO(members[member]))
        members[member] = npy(np.asarray(value, before.dtype))

    refused(tmp_path, altered(views, change), "intake" if name == "owners" else name)


@pytest.mark.parametrize(
    ("name", "value"),
    [("base", 0), ("base", 1), ("gap", -1), ("gap", 10**9), ("level", 1.0), ("level", 0.0), ("columns", ["a", "b"])],
)
def test_numbers_that_views_cannot_have(tmp_path: Path, views: bytes, name: str, value: Any) -> None:
    """How far back they look, another level than the threshold, columns that are not there."""

    def change(description: dict[str, Any], members: dict[str, bytes]) -> None:
        description["live"][0]["items"][name] = value

    told = {"gap": "gap|past", "base": "base|past", "level": "thresholds|level", "columns": "intake"}[name]
    refused(tmp_path, altered(views, change), told)


def test_views_and_their_promise_belong_together(tmp_path: Path, views: bytes, content: bytes) -> None:
    """Only they are rehearsed, and they do not begin with points drawn from the reference."""

    def rehearsal(description: dict[str, Any], own: Any) -> Any:
        calibration = description["fitted"]["items"]["calibration"]["fields"]
        before = calibration["rehearsal"]
        calibration["rehearsal"] = own
        return before

    def start(description: dict[str, Any], members: dict[str, bytes]) -> None:
        description["fitted"]["items"]["start"] = "warm"

    told: list[Any] = []
    altered(views, lambda description, members: told.append(rehearsal(description, None)))
    refused(tmp_path, altered(views, lambda description, members: rehearsal(description, None)), "rang|rehearsal")
    refused(tmp_path, altered(content, lambda description, members: rehearsal(description, told[0])), "rehearsal|start")
    refused(tmp_path, altered(views, start), r"start is warm, and must be cold")
