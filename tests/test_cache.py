"""Compiled code is kept somewhere, or nowhere: a home or a container that cannot be written to is no obstacle."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tocsin

FIT = """
import numpy as np, tocsin
rng = np.random.default_rng(0)
detector = tocsin.Detector(100, tocsin.MeanShift(), window=5, paths=300, interval=False, seed=1)
detector.fit(rng.normal(size=(60, 1)))
print(detector.update([0.3]).statistic)
"""

CALLED = """

@jit
def multiple(number: float) -> float:
    return number * 2.0
"""

CALLER = """
from tocsin._compute.jit import jit
from tocsin._compute.numba_pairs import multiple

@jit
def twice(number: float) -> float:
    return multiple(number)
"""


def run(temporary: Path, **environment: str) -> tuple[str, str]:
    """A fit and an update where numba finds no place of its own: what is printed, and what is complained about.

    numba is told to look at nothing but NUMBA_CACHE_DIR, as if neither the package nor the home could be written to.
    """
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    alone = {"NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator", "TMPDIR": str(temporary)}
    done = subprocess.run(
        [sys.executable, "-c", FIT], env={**kept, **alone, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout, done.stderr


def own(temporary: Path) -> Path:
    return temporary / f"tocsin-{os.getuid()}"


def test_code_is_kept_under_the_temporary_folder(tmp_path: Path) -> None:
    """With one line that says so; the next process finds it there."""
    answer, told = run(tmp_path)
    assert len(told.splitlines()) == 1
    assert str(own(tmp_path)) in told
    assert "NUMBA_CACHE_DIR" in told
    kept = {path: path.stat().st_mtime_ns for path in own(tmp_path).rglob("*.nbc")}
    assert kept
    again, told = run(tmp_path)
    assert again == answer
    assert len(told.splitlines()) == 1
    assert {path: path.stat().st_mtime_ns for path in own(tmp_path).rglob("*.nbc")} == kept


@pytest.mark.parametrize("planted", ["open to others", "a link", "in a folder that all may change"])
def test_a_folder_that_others_may_have_written_to_is_not_used(tmp_path: Path, planted: str) -> None:
    """Compiled code is run when it is loaded: then rather none is kept, and one line says so."""
    (tmp_path / "theirs").mkdir()
    if planted == "a link":
        own(tmp_path).symlink_to(tmp_path / "theirs")
    elif planted == "in a folder that all may change":
        tmp_path.chmod(0o777)
    else:
        own(tmp_path).mkdir()
        own(tmp_path).chmod(0o777)
    _, told = run(tmp_path)
    assert len(told.splitlines()) == 1
    assert "code is compiled anew in every process" in told
    assert not list(tmp_path.rglob("*.nbc"))


def test_a_folder_that_is_named_is_used(tmp_path: Path) -> None:
    """Without a word."""
    _, told = run(tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "named"))
    assert told == ""
    assert list((tmp_path / "named").rglob("*.nbc"))
    assert not own(tmp_path).exists()


def test_code_is_compiled_anew_after_any_change_of_what_is_compiled(tmp_path: Path) -> None:
    """A function that is called, from another file, may have changed while its caller did not."""
    shutil.copytree(Path(tocsin.__file__).parent, tmp_path / "tocsin", ignore=shutil.ignore_patterns("__pycache__"))
    pairs = tmp_path / "tocsin/_compute/numba_pairs.py"
    pairs.write_text(pairs.read_text() + CALLED)
    (tmp_path / "tocsin/_compute/numba_caller.py").write_text(CALLER)

    def answer() -> str:
        command = [sys.executable, "-c", "from tocsin._compute import numba_caller; print(numba_caller.twice(1.5))"]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert answer() == "3.0\n"
    pairs.write_text(pairs.read_text().replace("return number * 2.0", "return number * 4.0"))
    assert answer() == "6.0\n"
