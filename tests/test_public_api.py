"""What `import tocsin` offers, and what it costs."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import FrozenInstanceError, fields, is_dataclass
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import TypeVar, get_args, get_type_hints
from unittest.mock import MagicMock

import numpy as np
import pytest

import tocsin
import tocsin._statistics.base
import tocsin.baselines
import tocsin.representations


def _isort_style(name: str) -> tuple[int, str]:
    """Constants first, then classes, then the rest: the order of ruff's rule RUF022."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def test_all_is_sorted() -> None:
    """As ruff would sort it, each name once."""
    assert tocsin.__all__ == sorted(set(tocsin.__all__), key=_isort_style)


def test_all_is_what_is_public() -> None:
    """Every name that a user sees in the package is meant to be seen, and the other way round."""
    visible = {name for name, value in vars(tocsin).items() if name[0] != "_" and not isinstance(value, ModuleType)}
    assert visible == set(tocsin.__all__)


@pytest.mark.parametrize("name", tocsin.__all__)
def test_public_names_are_documented(name: str) -> None:
    """Each says in its first line what it is, and so does each of its methods."""
    thing = getattr(tocsin, name)
    assert (inspect.getdoc(thing) or "").partition("\n")[0].endswith("."), name
    for member, value in vars(thing).items():
        if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property | classmethod)):
            text = inspect.getdoc(getattr(value, "__func__", value))
            inherited = any(hasattr(parent, member) for parent in thing.__mro__[1:])
            assert text or inherited or _is_of_the_protocol(member), f"{name}.{member}"


def _is_of_the_protocol(member: str) -> bool:
    """`Statistic` documents these once for all statistics."""
    return hasattr(tocsin._statistics.base.Statistic, member)


@pytest.mark.parametrize("name", [name for name in tocsin.__all__ if name.endswith("Error")])
def test_errors_form_one_tree(name: str) -> None:
    """Whoever catches `TocsinError` catches all, and whoever catches what Python would raise does too."""
    error = getattr(tocsin, name)
    assert issubclass(error, tocsin.TocsinError)
    parents = {
        "InputError": ValueError,
        "NotFittedError": RuntimeError,
        "StorageError": ValueError,
        "MissingExtraError": ImportError,
        "TocsinError": Exception,
    }
    assert issubclass(error, parents[name])


def test_warnings_form_one_tree() -> None:
    """Whoever silences `ReferenceWarning` silences all that a fit says of its reference."""
    assert issubclass(tocsin.DependenceWarning, tocsin.ReferenceWarning)
    assert issubclass(tocsin.ReferenceWarning, UserWarning)


def test_samplers_are_values() -> None:
    """Small, frozen, compared by what they say, and shown as they are written."""
    assert repr(tocsin.Blocks(length=5)) == "Blocks(length=5, guard=None)"
    assert tocsin.Blocks(5, 2) == tocsin.Blocks(length=5, guard=2)
    assert tocsin.Independent() == tocsin.Independent()
    with pytest.raises(FrozenInstanceError):
        tocsin.Blocks().length = 3  # type: ignore[misc]


def test_missing_extra_says_what_to_install() -> None:
    """The package, the purpose and the command."""
    error = tocsin.MissingExtraError("pyarrow", "data", "Reading Parquet")
    assert str(error) == "Reading Parquet needs the package 'pyarrow': pip install 'tocsin[data]'"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_version() -> None:
    """Three numbers."""
    assert re.fullmatch(r"\d+\.\d+\.\d+", tocsin.__version__)


def _modules_after(code: str) -> set[str]:
    command = f"import sys; {code}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_import_is_light() -> None:
    """Compilers, plotting and the command line are imported when they are needed, and no earlier."""
    loaded = _modules_after("import tocsin")
    assert {"numpy", "tocsin"} <= loaded
    assert not loaded & {"numba", "llvmlite", "scipy", "rich", "typer", "click", "pandas", "pyarrow", "matplotlib"}


FIT = (
    "import numpy, tocsin; r = numpy.random.default_rng(0).normal(size=(30, 2)); "
    "d = tocsin.Detector(30, tocsin.MeanShift(), window=3, paths=200, backend='numpy').fit(r); "
)


def test_the_readable_backend_needs_no_compiler() -> None:
    """A fit and an update with backend='numpy' never import numba."""
    loaded = _modules_after(FIT + "d.update(r[0])")
    assert not loaded & {"numba", "llvmlite"}


def test_watching_needs_numpy_alone(tmp_path: Path) -> None:
    """What only a fit needs is not imported by a detector that was fitted before."""
    file = tmp_path / "d.tocsin"
    _modules_after(FIT + f"d.save({str(file)!r})")
    loaded = _modules_after(f"import tocsin; tocsin.Detector.load({str(file)!r}).update([0.0, 1.0])")
    assert not loaded & {"numba", "llvmlite", "scipy"}


def test_type_hints_are_shipped() -> None:
    """`py.typed` tells type checkers to use them."""
    assert files("tocsin").joinpath("py.typed").is_file()


# What is public

DOORS = {
    "tocsin": """
        LSDD MMD Blocks Calibration Channel Comparison Custom DependenceWarning Detector DetectorBank Explanation Fleet
        FleetAlarm Gaussian Incident Independent InputError Landmarks MeanShift MissingExtraError Monitor NotFittedError
        Outcome Outcomes ReferenceWarning Refused Step StorageError TocsinError Views compare
    """,
    "tocsin.baselines": "LSDDInc LSDDIncThreshold ScanB ScanBThreshold",
    "tocsin.integrations.river": "ChangeDetector",
    "tocsin.integrations.sklearn": "ChangeDetector",
    "tocsin.integrations.spark": "alarms fit history refused session to_folders watch",
    "tocsin.plots": """
        comparison_panel contributions_panel draw_comparison draw_explanation draw_path draw_power draw_promise
        onset_panel path_panel power_panel rarity_panel run_length_panel style
    """,
    "tocsin.representations": """
        ONNX PCA Autoencoder Described Encoder Projection Representation SentenceEmbedding Step
    """,
    "tocsin.types": """
        Began Column Columns ComparisonFacts DifferingColumn Errors Example ExplanationFacts Intake Moved Objects Option
        Power PowerFacts RateCurve Rehearsal Remedy Represented Rows SimulatedChange Statistic Table Tabular Tail Values
    """,
}
"""The modules that users import from, and all that they find there; everything else has an underscore in its name. A
name that comes is new to users, and one that goes breaks what they wrote: neither by accident."""

FOR_TOCSIN_ITSELF = set(dir(tocsin._statistics.base.Statistic))
"""Methods of statistics that only a fit calls; `Statistic` documents them."""


def door(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except tocsin.MissingExtraError as missing:
        pytest.skip(str(missing))


def test_everything_else_is_private_by_name() -> None:
    """There is no other module without an underscore, and doors hold nothing but imports."""
    root = Path(tocsin.__file__).parent
    for file in root.rglob("*.py"):
        parts = file.relative_to(root).with_suffix("").parts
        if parts[0].startswith("_") and parts[0] != "__init__":
            continue
        name = ".".join(("tocsin", *parts)).removesuffix(".__init__")
        assert name in DOORS or name == "tocsin.integrations"
        body = ast.parse(file.read_text()).body[1:]
        assigned = [target.id for node in body if isinstance(node, ast.Assign) for target in node.targets]  # type: ignore[attr-defined]
        assert set(assigned) <= {"__all__", "__version__"}
        assert all(isinstance(node, ast.Assign | ast.Import | ast.ImportFrom) for node in body), file


@pytest.mark.parametrize("name", DOORS)
def test_doors_offer_what_they_should(name: str) -> None:
    """As their files say, since some cannot be imported without an extra."""
    root, parts = Path(tocsin.__file__).parent, name.split(".")[1:]
    file = root.joinpath(*parts).with_suffix(".py") if parts else root / "__init__.py"
    (offered,) = re.findall(r"^__all__ = (\[.*?\])", file.read_text(), re.MULTILINE | re.DOTALL)
    assert ast.literal_eval(offered) == DOORS[name].split()


@pytest.mark.parametrize("name", DOORS)
def test_what_public_calls_return_is_public(name: str) -> None:
    """Every type of ours that a function, method, property or field gives a user can be imported, and is documented."""
    known = _known()
    for thing in list(_offered(name)) if door(name) else []:
        for where, returned in _returned(thing):
            assert returned in known, f"{where} gives {returned}, which no public module has"
            assert inspect.getdoc(returned), returned


def _known() -> set[object]:
    return {value for each in DOORS for value in _offered(each)}


def _offered(name: str) -> list[object]:
    try:
        module = importlib.import_module(name)
    except tocsin.MissingExtraError:
        return []
    return [getattr(module, each) for each in module.__all__]


def _returned(thing: object) -> Iterator[tuple[str, type]]:
    """Types of ours, and what gives them."""
    members, meant = {"": thing}, {}
    if inspect.isclass(thing):
        meant = _meant(thing)
        members = {name: inspect.getattr_static(thing, name) for name in dir(thing) if not name.startswith("_")}
        members = {name: value for name, value in members.items() if name not in FOR_TOCSIN_ITSELF}
        if is_dataclass(thing):
            hints = get_type_hints(thing)
            for field in fields(thing):
                yield from ((f"{thing}.{field.name}", own) for own in _ours(hints[field.name], meant))
    for name, member in members.items():
        function = getattr(member, "fget", None) or getattr(member, "__func__", member)
        if inspect.isfunction(function) and "return" in function.__annotations__:
            known = {**vars(builtins), **vars(sys.modules[function.__module__])}
            hint = get_type_hints(function, known, Elsewhere(known))["return"]
            yield from ((f"{thing}.{name}", own) for own in _ours(hint, meant))


class Elsewhere(dict[str, object]):
    """Stands for names of other libraries, which a module knows only while its types are checked."""

    def __missing__(self, name: str) -> object:
        return MagicMock()


def _meant(kind: type) -> dict[object, object]:
    """What a class puts for the type variables of those that it inherits from."""
    meant: dict[object, object] = {}
    for each in kind.__mro__:
        for base in getattr(each, "__orig_bases__", ()):
            variables = getattr(base.__origin__, "__parameters__", ()) if hasattr(base, "__origin__") else ()
            meant.update({key: value for key, value in zip(variables, get_args(base), strict=False) if key != value})
    return meant


def _ours(hint: object, meant: Mapping[object, object]) -> Iterator[type]:
    if isinstance(hint, TypeVar):
        hint = meant.get(hint, hint.__bound__)
    if isinstance(hint, type) and hint.__module__.startswith("tocsin"):
        yield hint
    for part in get_args(hint):
        yield from _ours(part, meant)


# What users hold


def rows(count: int, mean: float = 0.0) -> np.ndarray:
    return np.random.default_rng(0).normal(mean, size=(count, 2))


def table(count: int, mean: float = 0.0) -> list[dict[str, object]]:
    """Columns of every kind."""
    return [
        {"flow": x, "colour": "red" if x > y else "blue", "seen": f"2024-03-{1 + i * 7 % 28:02}", "said": f"{y:.9f} ml"}
        for i, (x, y) in enumerate(rows(count, mean).tolist())
    ]


def detector(reference: object, **options: object) -> tocsin.Detector:
    return tocsin.Detector(30, window=5, sampler=tocsin.Independent(), paths=200, seed=1, **options).fit(reference)  # type: ignore[arg-type]


def same(first: list[str], second: list[str]) -> np.ndarray:
    return np.equal.outer(first, second).astype(float)


def watched(block: object, **options: object) -> Iterator[object]:
    """A detector, what it says of a block, and what the alarm means."""
    own = detector(**options)
    yield own
    outcomes = own.update_until_alarm(block)
    yield from (outcomes, outcomes[-1], own.alarm, own.explain())


def of_a_bank() -> Iterator[object]:
    bank = tocsin.DetectorBank(detector(rows(60)), 2)
    yield bank
    for _ in range(5):
        yield bank.update(rows(2, 9.0))
    yield bank.explain(0)


def of_a_fleet() -> Iterator[object]:
    fleet = tocsin.Fleet(detector(rows(60)), explain=True)
    yield fleet
    given = np.concatenate([rows(8, 9.0), [[np.nan, 1.0]]])
    yield fleet.step(["a"], [None], given, np.zeros(9, np.int64), np.arange(9))


HELD: dict[str, Callable[[], Iterator[object]]] = {
    "arrays": lambda: watched(rows(9, 9.0), reference=rows(60)),
    "tables": lambda: watched(table(9, 9.0), reference=table(60)),
    "representations": lambda: watched(rows(9, 9.0), reference=rows(60), preprocess=tocsin.representations.PCA(1)),
    "functions": lambda: watched(rows(9, 9.0), reference=rows(60), preprocess=np.abs),
    "objects": lambda: watched(["bb"] * 9, reference=["a", "b"] * 30, statistic=tocsin.MMD(kernel=same)),
    "ScanB": lambda: iter([tocsin.baselines.ScanB(100, 5, samples=500).fit(rows(60))]),
    "LSDDInc": lambda: iter([tocsin.baselines.LSDDInc(100, 5, paths=1000).fit(rows(60))]),
    "comparison": lambda: iter([tocsin.compare(table(60), table(60, 9.0))]),
    "bank": of_a_bank,
    "fleet": of_a_fleet,
}


@pytest.mark.filterwarnings("ignore::tocsin.ReferenceWarning")
@pytest.mark.parametrize("name", HELD)
def test_what_users_hold_is_public(name: str) -> None:
    """Whatever attributes lead to, from what calls return on: annotations may say less than what is there."""
    known, seen = _known(), {}
    waiting = [(name, held) for held in HELD[name]()]
    while waiting:
        where, held = waiting.pop()
        if isinstance(held, list | tuple):
            waiting += [(f"{where}[{i}]", part) for i, part in enumerate(held[:50])]
        elif isinstance(held, dict):
            waiting += [(f"{where}[{key!r}]", part) for key, part in held.items()]
        if not type(held).__module__.startswith("tocsin") or id(held) in seen:
            continue
        assert known & set(type(held).__mro__), f"{where} is {type(held)}, which no public module has"
        seen[id(held)] = held
        members = [member for member in dir(held) if not member.startswith("_") and member not in FOR_TOCSIN_ITSELF]
        found = [(f"{where}.{member}", getattr(held, member)) for member in members]
        waiting += [(place, value) for place, value in found if not inspect.isroutine(value)]
    assert seen
