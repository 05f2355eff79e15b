"""Views and their rehearsal, as people and programs are told of them."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reported import Page, tocsin
from tocsin import DependenceWarning, Detector, Views, plots
from tocsin._cli import actions
from tocsin._compute.arrays import Float64Array
from tocsin._report import describing
from tocsin._report.gathering import apart
from tocsin.types import Rehearsal

ERT, WORLDS, SILENT = 200, 12, 25
BEFORE, AFTER = 1000, 300
"""Rows of the reference, and of the stream after it."""

CHANGE = 150
"""The row of the stream from which vibration is far above all that it was."""


def remembering(count: int, memory: float, rng: np.random.Generator) -> Float64Array:
    """Rows that depend on the one before."""
    values = rng.normal(size=count)
    for t in range(1, count):
        values[t] += memory * values[t - 1]
    return values


def rows() -> list[dict[str, Any]]:
    """A walk, a column with a memory, one that stays what it is, and a mode that goes on for a while."""
    rng = np.random.default_rng(0)
    count = BEFORE + AFTER
    flow = np.cumsum(rng.normal(size=count)) / 2 + rng.normal(size=count)
    pressure, vibration = remembering(count, 0.6, rng), rng.normal(size=count)
    mode = np.where(remembering(count, 0.9, rng) > 0, "idle", "busy")
    vibration[BEFORE + CHANGE :] += 12
    columns = zip(flow.tolist(), pressure.tolist(), vibration.tolist(), mode.tolist(), strict=True)
    return [dict(zip(("flow", "pressure", "vibration", "mode"), row, strict=True)) for row in columns]


ROWS = rows()
REFERENCE, STREAM = ROWS[:BEFORE], ROWS[BEFORE:]


def csv(table: list[dict[str, Any]]) -> str:
    """As CSV."""
    lines = [list(table[0]), *(list(row.values()) for row in table)]
    return "".join(f"{','.join(map(str, line))}\n" for line in lines)


def words(text: str) -> str:
    """Without the line breaks of a terminal."""
    return " ".join(text.split())


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A detector, as `tocsin fit` makes it of a reference that depends on its order; not to be changed."""
    file = tmp_path_factory.mktemp("views") / "pump.tocsin"
    result = fit(file)
    assert result.exit_code == 0, result.output
    return file


def fit(file: Path, *options: object) -> Any:
    """`tocsin fit`, quickly."""
    basics = ("fit", "-", "-o", file, "--ert", ERT, "--paths", WORLDS, "--seed", 1, "--force")
    return tocsin(*basics, *options, stdin=csv(REFERENCE))


def test_a_fit_tells_what_it_rehearsed(tmp_path: Path) -> None:
    """And which column wanders, what is watched, and that runs begin silent; to people and to programs."""
    told = words(fit(tmp_path / "d.tocsin").stdout)
    assert f"each run is silent for its first {SILENT} observations" in told
    assert "4 views of 4 columns (level, prediction error, change and moving level)" in told
    assert "what the reference never shows, in 2 columns" in told
    assert "the level of flow moves on" in told
    assert "(--statistic views)" in told
    facts = json.loads(fit(tmp_path / "d.tocsin", "--json").stdout)
    rehearsal = Detector.load(tmp_path / "d.tocsin").calibration_.rehearsal
    assert rehearsal is not None
    assert facts["rehearsal"]["passed"] == rehearsal.passed
    assert facts["rehearsal"]["text"] == str(rehearsal)
    assert "flow" in facts["rehearsal"]["wandering"]
    assert str(rehearsal).removeprefix("rehearsed ") in told
    assert {channel["column"] for channel in facts["channels"]} == {*REFERENCE[0], "(newly missing)"}
    views = {channel["view"] for channel in facts["channels"]}
    assert views == {"level", "prediction error", "change", "moving level", "stopped"}
    assert (facts["start"], facts["references"], facts["points_to_halve"]) == ("cold", "worlds", None)


def test_statistics_by_name(tmp_path: Path, fitted: Path) -> None:
    """Views by name are those by default; whoever asks for blocks has the statistic of independent rows."""
    views = json.loads(fit(tmp_path / "d.tocsin", "--statistic", "views", "--json").stdout)
    assert views["thresholds"] == Detector.load(fitted).thresholds_.tolist()
    blocks = json.loads(
        fit(tmp_path / "d.tocsin", "--sampler", "blocks", "--window", 5, "--paths", 300, "--json").stdout
    )
    assert "MMD" in {channel["statistic"] for channel in blocks["channels"]}
    assert blocks["rehearsal"] is None
    refused = fit(tmp_path / "d.tocsin", "--statistic", "views", "--sampler", "blocks")
    assert refused.exit_code == 2
    assert "--statistic views stands alone" in refused.stderr


def test_a_check_tells_it_again_and_counts_silent_rows(fitted: Path, tmp_path: Path) -> None:
    """An expected run time counts the silence of runs, as the simulation did."""
    quiet = tmp_path / "quiet.csv"
    quiet.write_text(csv(STREAM[:CHANGE]))
    result = tocsin("check", fitted, "--stream", quiet, "--plot", tmp_path / "p.png")
    told = words(result.stdout)
    assert result.exit_code in (0, 1), result.output
    assert "Rehearsal on its last" in told
    assert f"in {CHANGE} observations, where the promise means {CHANGE / ERT:.3g}" in told
    assert f"simulated streams of {Detector.load(fitted).calibration_.tests:,} tests" in told
    facts = json.loads(tocsin("check", fitted, "--stream", quiet, "--json").stdout)
    assert facts["stream"]["expected_alarms"] == pytest.approx(CHANGE / ERT)
    quiet.write_text(csv(STREAM[:SILENT]))
    silent = tocsin("check", fitted, "--stream", quiet)
    assert silent.exit_code == 2
    assert "too short for a single test" in silent.stderr


def test_a_watch_says_where_it_was_heard(fitted: Path) -> None:
    """In which column and view, and that the column has left all that the reference has."""
    told = words(tocsin("watch", fitted, "-", stdin=csv(STREAM)).stdout)
    assert "of vibration, window" in told
    assert "in vibration (higher" in told
    assert "vibration has left all that the reference has." in told
    lines = tocsin("watch", fitted, "-", "--json", stdin=csv(STREAM)).stdout.splitlines()
    alarms = [alarm for alarm in map(json.loads, lines[:-1]) if alarm["row"] > CHANGE]
    assert alarms[0]["channel"]["column"] == "vibration"
    assert alarms[0]["channel"]["view"] in ("level", "prediction error", "change", "moving level")
    assert any("vibration" in alarm["explanation"]["beyond"] for alarm in alarms)
    assert "Heard in" in alarms[0]["explanation"]["text"]


def test_an_alarm_that_waits_is_told_by_the_next_watch(
    fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The detector's file holds it, channel and all, and can be read again."""
    monkeypatch.setattr(actions, "BACKOFF", 0.001)
    file, heard = tmp_path / "d.tocsin", tmp_path / "heard.json"
    file.write_bytes(fitted.read_bytes())
    first = tocsin("watch", file, "-", "--once", "--save-state", "--on-alarm", "false", stdin=csv(STREAM))
    assert "had no effect" in first.stderr
    again = tocsin("watch", file, "-", "--save-state", "--on-alarm", f'cat > "{heard}"', stdin="")
    assert (again.exit_code, again.stderr) == (0, "")
    assert json.loads(heard.read_text())["channel"]["view"] is not None


def test_a_report_has_all_of_it(fitted: Path, tmp_path: Path) -> None:
    """What was rehearsed beside the promise, and loudness instead of contributions."""
    page = tmp_path / "r.html"
    result = tocsin("report", fitted, "-", "-o", page, stdin=csv(STREAM))
    assert result.exit_code == 1, result.output
    text = words(Page(page.read_text()).text)
    rehearsal = Detector.load(fitted).calibration_.rehearsal
    assert rehearsal is not None
    assert str(rehearsal).removeprefix("rehearsed ") in text
    assert rehearsal.wanders in text
    assert "Beyond all that the reference has: vibration" in text
    assert "Loudness" in text
    assert "Contribution" not in text
    assert "of false alarms" not in text


def test_a_stream_that_is_silent_all_along(fitted: Path, tmp_path: Path) -> None:
    """A page without a single test can be written."""
    result = tocsin("report", fitted, "-", "-o", tmp_path / "r.html", stdin=csv(STREAM[:10]))
    assert result.exit_code == 0, result.output
    assert "no alarm in 10 observations" in words(Page((tmp_path / "r.html").read_text()).text)


def test_figures(fitted: Path, tmp_path: Path) -> None:
    """A path with silent rows, and an explanation, are drawn."""
    detector = Detector.load(fitted)
    outcomes = detector.update_until_alarm(STREAM)
    explanation = detector.explain()
    plots.draw_path(outcomes, tmp_path / "path.svg", explanations=[explanation])
    explanation.plot(tmp_path / "why.svg")
    assert "loudness" in (tmp_path / "why.svg").read_text()


def test_alarms_of_a_series_are_counted_from_the_end_of_a_silence(fitted: Path) -> None:
    """A run cannot ring before."""
    assert apart(Detector.load(fitted)) == SILENT + ERT / 20


NUMBERS = r"(higher|lower)( than .*)?|(changes|prediction errors) .*"
CATEGORIES = r"(more|less) often (idle|busy)( than .*)?|(changes|prediction errors) .*"


def test_how_columns_changed(fitted: Path) -> None:
    """In words that suit them: numbers rise and fall, categories come more often or less."""
    detector = Detector.load(fitted)
    detector.update_until_alarm(STREAM)
    for moved in detector.explain().columns:
        assert re.fullmatch(CATEGORIES if moved.name == "mode" else NUMBERS, moved.how), moved


def test_what_stands_still(fitted: Path) -> None:
    """Has ceased to err, or to change."""
    detector = Detector.load(fitted)
    rows = [*STREAM[:CHANGE], *({**row, "vibration": 0.01} for row in REFERENCE[:400])]
    while len(rows := rows[len(detector.update_until_alarm(rows)) :]):
        heard = detector.explain().changed[0]
        if heard.name == "vibration" and ("ceased" in heard.how or "smaller" in heard.how):
            return
    pytest.fail("It was not heard.")


def test_many_columns_are_told_as_directions() -> None:
    """Not as hundreds of names; and a warning says that views were chosen."""
    rng = np.random.default_rng(2)
    table = np.column_stack([remembering(150, 0.8, rng) for _ in range(70)])
    with pytest.warns(DependenceWarning, match="one by one"):
        detector = Detector(50, paths=6, seed=1).fit(table, progress=False)
    assert "4 views of 64 principal directions of 70 columns" in describing.channels(detector)
    assert "rehearsed: " in repr(detector)
    assert "rehearsed: " in repr(detector.calibration_)


def test_a_short_reference_is_taken() -> None:
    """Over shorter windows, and what it can say of rehearsal is told as little."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        detector = Detector(100, Views(), seed=1, paths=WORLDS).fit(REFERENCE[:80], progress=False)
    assert describing.start(detector) == "each run is silent for its first 8 observations"
    assert "a longer reference would narrow it" in describing.precision(detector)
    assert "not tested" in describing.sampling(detector)


def rehearsal(**other: Any) -> Rehearsal:
    """One that agrees with simulation, or differs from that."""
    usual = {"rows": 600, "once_in": 50.0, "passed": 12, "expected": 11.0, "spread": 2.0, "wandering": ()}
    return Rehearsal(**{**usual, "unforeseen": 0.0, **other})


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({}, "agrees with simulation"),
        ({"passed": 16}, "more than simulation explains"),
        ({"passed": 6}, "less than simulation explains"),
        ({"passed": 0, "expected": 0.7, "spread": 0.6}, "too few to say much"),
    ],
)
def test_rehearsal_and_simulation(other: dict[str, Any], said: str) -> None:
    """They agree within two spreads."""
    assert str(rehearsal(**other)).endswith(said)


def test_what_rehearsal_says_of_columns() -> None:
    """Nothing of those that stay; of those that do not, by name, and not of more than can be read."""
    assert rehearsal().wanders == rehearsal().allowance == ""
    assert rehearsal(wandering=("flow",)).wanders.startswith("the level of flow moves on")
    assert rehearsal(wandering=("flow", "3")).wanders.startswith("the levels of flow and column 3 move on")
    many = rehearsal(wandering=tuple(f"c{k}" for k in range(40)))
    assert "c7 and 32 more move on" in many.wanders
    assert many.in_short.endswith("c7 and 32 more move on")
    assert "by 22% more" in rehearsal(unforeseen=0.2).allowance
    assert "rung once where" in str(rehearsal(passed=1))
