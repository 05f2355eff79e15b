"""Messages and the options in them: in Python's words, in the command line's, and on the way between processes."""

from __future__ import annotations

import ast
import copy
import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
import typer.main

import tocsin
from tocsin import Blocks, DependenceWarning, InputError, MissingExtraError, StorageError
from tocsin._cli import app
from tocsin._cli.spelling import FLAGS, spelled
from tocsin._common.errors import Code, Option, Worded

SOURCE = Path(tocsin.__file__).parent

TYPED = re.compile(r"(?<![\w-])--[a-z]")
"""A flag, in a text."""

PYTHON_ONLY = {
    "Autoencoder.epochs",
    "Autoencoder.latent",
    "Blocks.guard",
    "Custom.function",
    "Gaussian.factors",
    "LSDD.centres",
    "LSDD.regularisation",
    "MMD.approximation",
    "MMD.kernel",
    "MeanShift.direction",
    "ONNX.model",
    "PCA.components",
    "adapt.batch_size",
    "after",
    "before",
    "buckets",
    "context_model",
    "detector",
    "for_all",
    "order",
    "owner",
    "preprocess",
    "preprocess_share",
    "reference",
    "reset_on_alarm",
    "resets",
    "rest",
    "rows",
    "samples",
    "streams",
    "theme",
    "warning",
}
"""Options without a flag."""

APART = {"_baselines", "_plots", "representations", "spark"}
"""Parts of the source whose options no command has."""


# A message


def test_a_message_is_told_in_several_ways() -> None:
    """As Python spells options, and as anyone else does; what is around them stays."""
    error = InputError("Give ", Option("window", [8, 25]), ", or no ", Option("cluster"), ".")
    assert str(error) == "Give window=[8, 25], or no cluster."
    assert error.told(spelled) == "Give --window 8,25, or no --cluster."
    assert repr(error) == "InputError('Give window=[8, 25], or no cluster.')"
    assert error.options == (Option("window", [8, 25]), Option("cluster"))
    assert str(InputError("Told {before}: ", *error.parts)) == "Told {before}: Give window=[8, 25], or no cluster."


@pytest.mark.parametrize(
    ("option", "in_python", "typed"),
    [
        (Option("ert", 1), "ert=1", "--ert 1"),
        (Option("ert", 2.0), "ert=2.0", "--ert 2"),
        (Option("ert", 123456789.5), "ert=123456789.5", "--ert 123456789.5"),
        (Option("ert", Code("1e+09")), "ert=1e+09", "--ert 1e+09"),
        (Option("window", ...), "window=...", "--window"),
        (Option("cluster"), "cluster", "--cluster"),
        (Option("device", "gpu"), "device='gpu'", "--device gpu"),
        (Option("device", ""), "device=''", "--device"),
        (Option("columns", ["x", "y"]), "columns=['x', 'y']", "--columns x,y"),
        (Option("kinds", {"x": "text"}), "kinds={'x': 'text'}", "--kinds x=text"),
        (Option("interval", True), "interval=True", "--interval"),
        (Option("sampler", "auto"), "sampler='auto'", "--sampler auto"),
        (Option("sampler", Code("Blocks()")), "sampler=Blocks()", "--sampler blocks"),
        (Option("sampler", Code("Independent()")), "sampler=Independent()", "--sampler independent"),
        (Option("length", 0, of="Blocks"), "Blocks(length=0)", "--sampler blocks --block-length 0"),
        (Option("count", 90, of="Landmarks"), "Landmarks(count=90)", "--landmarks 90"),
        (Option("width", (1, -2.5), of="Gaussian"), "Gaussian(width=(1, -2.5))", "--width 1,-2.5"),
        (Option("approximation", Code("Landmarks(...)")), "approximation=Landmarks(...)", "--landmarks"),
        (Option("backend", "numba"), "backend='numba'", "--backend numba"),
        (Option("kernel", ..., of="MMD"), "MMD(kernel=...)", "MMD(kernel=...) (in Python)"),
        (Option("sampler", Blocks(3)), f"sampler={Blocks(3)!r}", f"sampler={Blocks(3)!r} (in Python)"),
        (Option("paths", None), "paths=None", "paths=None (in Python)"),
    ],
)
def test_options(option: Option, in_python: str, typed: str) -> None:
    """In both languages; what cannot be typed is said to be Python's."""
    assert str(option) == in_python
    assert spelled(option) == typed


def test_a_command_may_have_flags_of_its_own() -> None:
    """`tocsin reproduce` has --backend, and no --device."""
    assert spelled(Option("backend", "numba"), FLAGS | {"backend": "--backend"}) == "--backend numba"


# On the way


@pytest.mark.parametrize("travel", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])
@pytest.mark.parametrize(
    "error",
    [
        InputError("Plain text."),
        InputError(Option("window", [3, (2.5, None)]), ": no."),
        StorageError("Give ", Option("cluster"), " or ", Option("kinds", {"x": ...}), "."),
        InputError(Option("sampler", lambda x: x), " and ", Option("statistic", [Blocks(3)]), " cannot be pickled."),
        DependenceWarning("Give ", Option("sampler", Code("Blocks()")), "."),
        MissingExtraError("distributed", "dask", Option("cluster", "tcp://host"), " of yours"),
    ],
)
def test_errors_travel(error: Worded, travel: Callable[[Worded], Worded]) -> None:
    """With all that they say; a value that cannot is told as it was."""
    arrived = travel(error)
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
    assert arrived.told(spelled) == error.told(spelled)
    assert [option.name for option in arrived.options] == [option.name for option in error.options]


def test_values_arrive_as_they_left() -> None:
    """If they are Python's own; of others, the text does."""
    values = [3, 2.5, "auto", None, ..., True, [1, "a"], (1, 2), {"x": [1]}, Code("Blocks()")]
    arrived = pickle.loads(pickle.dumps(InputError(*(Option("ert", value) for value in values))))
    assert [option.value for option in arrived.options] == values
    (option,) = pickle.loads(pickle.dumps(InputError(Option("sampler", Blocks(3))))).options
    assert option.value == repr(Blocks(3))
    assert isinstance(option.value, Code)


# All messages of the source


def modules() -> list[tuple[Path, ast.Module]]:
    """Every module but those of the command line, parsed."""
    files = (file for file in sorted(SOURCE.rglob("*.py")) if file.parent.name != "_cli")
    return [(file, ast.parse(file.read_text(encoding="utf-8"))) for file in files]


def options_in_the_source() -> set[str]:
    """All options that messages name, each after its class.

    Where a function gets the name of an option, those that it is called with.
    """
    nodes = [node for _, tree in modules() for node in ast.walk(tree)]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    places, found, more = dict[str, int](), set[str](), {"Option": 0}
    while more:
        places |= more
        more = {}
        for function in functions:
            own = [argument.arg for argument in function.args.args]
            for given, _ in names_given(ast.walk(function), places):
                if isinstance(given, ast.Name) and given.id in own and function.name not in places:
                    more[function.name] = own.index(given.id)
    for given, owner in names_given(nodes, places):
        if isinstance(given, ast.Constant):
            found.add(".".join(filter(None, (owner, str(given.value)))))
    return found


def names_given(nodes: Iterable[ast.AST], places: dict[str, int]) -> Iterator[tuple[ast.expr, str]]:
    """What functions are given for the name of an option, by the place of that argument, and the class."""
    for call in nodes:
        if isinstance(call, ast.Call):
            called = getattr(call.func, "id", getattr(call.func, "attr", ""))
            named = {keyword.arg: keyword.value for keyword in call.keywords}
            if called in places and len(call.args) > places[called]:
                yield call.args[places[called]], getattr(named.get("of"), "value", "")
            if called == "check_sizes":  # representations' own: the class, and options by keyword
                yield from ((ast.Constant(name), getattr(call.args[0], "value", "")) for name in named if name)


def test_the_command_line_can_spell_every_option() -> None:
    """Each option that a message names has a flag, or is known to have none."""
    found = options_in_the_source()
    assert {"ert", "window", "Blocks.length", "guarantee", "Gaussian.width"} <= found
    assert found - FLAGS.keys() == PYTHON_ONLY
    assert FLAGS.keys() - found == set()


def test_flags_are_those_of_commands() -> None:
    """Nothing is advised that cannot be typed."""
    commands = vars(typer.main.get_command(app))["commands"].values()
    known = {flag for command in commands for option in command.params for flag in option.opts}
    advised = " ".join(FLAGS.values()).split()
    assert {word for word in advised if word.startswith("-")} <= known


def test_only_the_command_line_knows_flags() -> None:
    """No other module has a text with one in it; Git's own are another matter."""
    for file, tree in modules():
        if file.name != "provenance.py":
            texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
            assert not [text for text in texts if isinstance(text, str) and TYPED.search(text)], file


def test_options_are_no_text() -> None:
    """Where an option has a flag, no message spells it as Python does: it would reach the command line so."""
    names = {flag.rpartition(".")[2] for flag in FLAGS}
    spelt = re.compile(rf"(?<!load\(path, )\b({'|'.join(names)})=")
    for file, tree in modules():
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and file.parent.name not in APART]
        messages = [call for call in calls if re.search(r"(Error|Warning)$", getattr(call.func, "id", ""))]
        parts = [part for message in messages for part in message.args if not isinstance(part, ast.Call)]
        for text in (text for part in parts for text in ast.walk(part) if isinstance(text, ast.Constant)):
            assert not spelt.search(str(text.value)), f"{file}, line {text.lineno}"
