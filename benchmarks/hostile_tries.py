"""Tries in processes of their own: one that dies, hangs or takes too much memory is seen as such, and the next goes on.

Every kind of attack is a module with `prepare`, `ready` and `attempt` (see `Attack`). Try number i of a seed is always
the same.
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tocsin import TocsinError

PATIENCE = 60
"""Seconds that a try may take."""

TIMES, SPARE = 3, 50 * 2**20
"""Memory that a try may take: so many times what it was given, and so many bytes besides."""

ROOM = 16 * 2**30
"""Addresses that a process may have, so that an attack that works does not stop the machine."""

TRIES_AT_ONCE = 500


class Attack(Protocol):
    """A kind of attack: what a module must have."""

    def prepare(self, folder: Path) -> None:
        """Make what tries have in common, once."""

    def ready(self, folder: Path) -> None:
        """Do once what takes memory in every process: imports, compiled code."""

    def attempt(self, folder: Path, seed: int, number: int) -> Try:
        """What to try."""


@dataclass(frozen=True)
class Try:
    """Something to try.

    size: bytes that it is given.  use: does it, and raises what comes out of it.
    """

    kind: str
    size: int
    use: Callable[[], None]


class Broken(Exception):  # noqa: N818 (no error: what must not be)
    """A try went on and gave what it must not."""


@dataclass
class Tally:
    """The ends of tries of one kind.

    grown: most memory that a try took, in bytes.  over: tries that took more than they may.
    """

    tries: int = 0
    worked: int = 0
    clear: int = 0
    raw: int = 0
    crashed: int = 0
    grown: int = 0
    over: int = 0
    worst: list[str] = field(default_factory=list)

    @property
    def bad(self) -> int:
        return self.raw + self.crashed + self.over


def attacked(name: str, tries: int, seed: int = 0) -> dict[str, Tally]:
    """Make tries of the attack in the module of this name; what they came to, by kind."""
    tallies: dict[str, Tally] = {}
    with tempfile.TemporaryDirectory() as folder:
        _attack(name).prepare(Path(folder))
        first = 0
        while first < tries:
            count = min(TRIES_AT_ONCE, tries - first)
            done = 0
            for told in _in_a_process(name, Path(folder), seed, first, count):
                _count(tallies.setdefault(told["kind"], Tally()), told)
                done += 1
            first += max(done, 1)
    return tallies


def _attack(name: str) -> Attack:
    module: Any = importlib.import_module(name)
    return module  # type: ignore[no-any-return]


def _in_a_process(name: str, folder: Path, seed: int, first: int, count: int) -> Iterator[dict[str, Any]]:
    """What tries came to; the last of them is the one in which the process died, if it did."""
    call = ["-m", "benchmarks.hostile_tries", name, "--folder", str(folder), "--seed", str(seed)]
    call += ["--first", str(first), "--tries", str(count)]
    with subprocess.Popen([sys.executable, *call], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        begun: dict[str, Any] | None = None
        for line in child.stdout:
            told = json.loads(line)
            if told["end"] == "begun":
                begun = told
            else:
                begun = None
                yield told
        errors = "" if child.stderr is None else child.stderr.read()
    if begun is None and child.returncode:
        raise RuntimeError(f"The process of tries from {first} on did not begin: {errors[-2000:]}")
    if begun is not None:
        yield {**begun, "end": "crashed", "error": f"status {child.returncode}: {errors[-500:]}"}


def _count(tally: Tally, told: dict[str, Any]) -> None:
    tally.tries += 1
    end = told["end"]
    setattr(tally, end, getattr(tally, end) + 1)
    grown, size = told.get("grown", 0), told.get("size", 0)
    tally.grown = max(tally.grown, grown)
    over = grown > TIMES * size + SPARE
    tally.over += over
    if over or end in ("raw", "crashed"):
        what = f"{grown / 2**20:.0f} MB for {size / 2**20:.2f}" if over else told["error"]
        tally.worst.append(f"try {told['number']} ({told['kind']}): {what}")


def _make_tries(name: str, folder: Path, seed: int, first: int, count: int) -> None:
    """In a process of its own: tells each try before it is made, and what it came to."""
    warnings.simplefilter("ignore")
    attack = _attack(name)
    attack.ready(folder)
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
    for number in range(first, first + count):
        given = attack.attempt(folder, seed, number)
        told: dict[str, Any] = {"number": number, "kind": given.kind, "size": given.size, "end": "begun"}
        print(json.dumps(told), flush=True)
        signal.alarm(PATIENCE)  # nobody catches it: a try that hangs is one that crashed
        before = memory()
        told["end"] = "worked"
        try:
            given.use()
        except TocsinError as error:
            told |= {"end": "clear", "error": f"{type(error).__name__}: {error}"[:500]}
        except Exception as error:
            told |= {"end": "raw", "error": f"{type(error).__name__}: {error}"[:500]}
        signal.alarm(0)
        told["grown"] = max(memory(peak=True) - before, 0)
        print(json.dumps(told), flush=True)


def memory(*, peak: bool = False) -> int:
    """Bytes of this process in memory, or the most since this was last asked for without `peak`."""
    if not peak:
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    wanted = "VmHWM" if peak else "VmRSS"
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(wanted):
            return int(line.split()[1]) * 1024
    return 0


def main() -> None:
    """Make some tries, for the process that counts them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--folder", type=Path, required=True)
    for number in ("--seed", "--first", "--tries"):
        parser.add_argument(number, type=int, required=True)
    given = parser.parse_args()
    _make_tries(given.name, given.folder, given.seed, given.first, given.tries)


if __name__ == "__main__":
    main()
