"""No module reaches into another's private names: what begins with an underscore is used where it is defined.

Methods may use what their classes inherit, by `self`, `cls` or `super()`. The rooms of the package have an underscore
for users alone.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tocsin

ROOT = Path(tocsin.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
BENCHMARKS = sorted((Path(__file__).parents[1] / "benchmarks").glob("*.py"))

PUBLIC = {"_asdict", "_fields", "_exit"}
"""Of named tuples and of Python's own modules: documented, whatever they look like."""

NUMBAS = {"_cache", "_cache_file", "_source_stamp"}
"""There is no other way to tell it what compiled code depends on; tests/test_cache.py sees whether they still do."""


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC | NUMBAS


def defined(tree: ast.Module) -> set[str]:
    """Private names that a module defines: functions, classes, and attributes that are assigned or annotated."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.id if isinstance(node, ast.Name) else node.attr)
    return {name for name in names if private(name)}


def own(node: ast.expr) -> bool:
    """Whether it is the object itself that a method was called on, or what it inherits."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def reached(source: str) -> list[str]:
    """Private names of others, with the lines that use them."""
    tree = ast.parse(source)
    here, found = defined(tree), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and private(node.attr) and not own(node.value) and node.attr not in here:
            found.append(f"{node.attr} in line {node.lineno}")
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tocsin."):
            found += [f"{alias.name} in line {node.lineno}" for alias in node.names if private(alias.name)]
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_private_names_stay_where_they_are(file: Path) -> None:
    assert reached(file.read_text()) == []


def test_reaching_is_seen() -> None:
    """By attribute, by import, and in a module that has the name of its own only to read it."""
    assert reached("from tocsin._streams.bank import _hidden\nx._fitted\nsome._thing.other") == [
        "_hidden in line 1",
        "_fitted in line 2",
        "_thing in line 3",
    ]
    assert reached("class A:\n  def f(self, other):\n    self._x = 1\n    return other._x + self._y") == []


LONG = 350


@pytest.mark.parametrize("file", [*FILES, *BENCHMARKS], ids=lambda file: f"{file.parent.name}/{file.name}")
def test_long_files_say_why(file: Path) -> None:
    """In their first lines."""
    text = file.read_text()
    assert len(text.splitlines()) <= LONG or "A long file, since " in text[:1000]
