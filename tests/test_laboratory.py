"""Work that is kept as it is done: whatever stops an experiment, it goes on where it was, with the same results."""

from __future__ import annotations

import math
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tocsin import InputError, StorageError, TocsinError, __version__
from tocsin import _compute as compute
from tocsin._experiments import provenance
from tocsin._experiments.base import Experiment, Options, Perform, Result, Table, Tables, Unit, generator
from tocsin._experiments.laboratory import Laboratory, read_table, write_table
from tocsin._experiments.ledger import Ledger

UNITS = 12
PATIENCE = 60.0


# A toy experiment. What its work does besides is said by files in a folder of notes.


@dataclass(frozen=True)
class Draw(Unit):
    """A random number; leaves a note that it was drawn, by which process."""

    number: int
    seed: int
    notes: str

    def run(self) -> Result:
        """Draw it, unless told to fail."""
        notes = Path(self.notes)
        if (notes / f"break {self.number}").exists():
            raise RuntimeError("broken")
        if (notes / f"die {self.number}").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        if (notes / "slowly").exists():
            time.sleep(float((notes / "slowly").read_text()))
        note = notes / f"drawn {self.number} {os.getpid()} {time.monotonic_ns()}"
        note.write_text(os.environ.get("OMP_NUM_THREADS", ""))
        value = generator(self.seed, "toy", self.number).standard_normal(3)
        return {"value": value, "count": np.array(self.number), "label": np.array(["a", "b"])}


def toy(notes: Path) -> Experiment:
    """An experiment of UNITS pieces of work, and one that depends on them."""

    def measure(options: Options, perform: Perform) -> Tables:
        first = perform("first", [Draw(i, options.seed, str(notes)) for i in range(UNITS)])
        largest = int(np.argmax([result["value"].sum() for result in first]))
        (last,) = perform("last", [Draw(100 + largest, options.seed, str(notes))])
        table: Table = [
            {"number": int(result["count"]), "mean": float(result["value"].mean()), "label": str(result["label"][1])}
            for result in [*first, last]
        ]
        return {"toy": table}

    def draw(tables: Tables, folder: Path) -> str:
        (folder / "toy.png").touch()
        return f"{len(tables['toy'])} rows\n"

    return Experiment("a toy", ("toy",), measure, draw)


def drawn(notes: Path) -> dict[int, int]:
    """How often each piece of work was done."""
    numbers = [int(note.name.split()[1]) for note in notes.glob("drawn *")]
    return {number: numbers.count(number) for number in sorted(numbers)}


def done(folder: Path) -> int:
    """How many pieces of work a ledger holds."""
    if not (folder / "ledger.sqlite").exists():
        return 0
    database = sqlite3.connect(folder / "ledger.sqlite")
    try:
        (count,) = database.execute("SELECT COUNT(*) FROM done").fetchone()
    except sqlite3.OperationalError:
        return 0  # the table is not there yet, or is just being written
    finally:
        database.close()
    return int(count)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder for notes."""
    (tmp_path / "notes").mkdir()
    return tmp_path / "notes"


@pytest.fixture
def undisturbed(tmp_path: Path, notes: Path) -> Table:
    """What the toy's table should be."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    Laboratory(tmp_path / "undisturbed", workers=1).run(toy(elsewhere), Options(seed=3))
    return read_table(tmp_path / "undisturbed" / "toy.csv")


def test_the_number_of_workers_changes_nothing(
    tmp_path: Path, notes: Path, undisturbed: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes give the table that one gives, in the order of the work; each did a part, with one thread."""
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    (notes / "slowly").write_text("0.1")
    tables = Laboratory(tmp_path / "two", workers=2).run(toy(notes), Options(seed=3))
    assert read_table(tmp_path / "two" / "toy.csv") == undisturbed
    assert [row["mean"] for row in tables["toy"]] == [row["mean"] for row in undisturbed]
    assert set(drawn(notes).values()) == {1}
    workers = [note for note in notes.glob("drawn *") if int(note.name.split()[1]) < UNITS]
    assert len({note.name.split()[2] for note in workers} - {str(os.getpid())}) == 2
    assert {note.read_text() for note in workers} == {"1"}
    assert os.environ["OMP_NUM_THREADS"] == "7"


def test_tables_say_where_they_come_from(tmp_path: Path, undisturbed: Table) -> None:
    """Every row has the seed, the commit and the machine."""
    assert len(undisturbed) == UNITS + 1
    for row in undisturbed:
        assert row["seed"] == 3
        assert row["commit"] == provenance.commit()
        assert row["machine"] == provenance.machine()


def test_a_commit_may_look_like_a_number(tmp_path: Path) -> None:
    write_table(tmp_path / "a.csv", [{"commit": "0477007", "count": 3}, {"commit": "12e4567", "count": 4}])
    assert read_table(tmp_path / "a.csv") == [{"commit": "0477007", "count": 3}, {"commit": "12e4567", "count": 4}]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failure_keeps_what_was_done(tmp_path: Path, notes: Path, undisturbed: Table, workers: int) -> None:
    """And the next run does the rest only; a third nothing at all."""
    laboratory = Laboratory(tmp_path / "again", workers=workers)
    (notes / "break 7").touch()
    with pytest.raises(RuntimeError, match="broken"):
        laboratory.run(toy(notes), Options(seed=3))
    kept = done(tmp_path / "again")
    assert 0 < kept < UNITS
    assert workers == 2 or kept == 7
    assert not (tmp_path / "again" / "toy.csv").exists()
    (notes / "break 7").unlink()
    before = drawn(notes)
    for _ in range(2):
        laboratory.run(toy(notes), Options(seed=3))
        assert read_table(tmp_path / "again" / "toy.csv") == undisturbed
        again = {number for number, times in drawn(notes).items() if times > 1}
        # With two workers a piece may have been done, and lost, when the other failed.
        assert len(again) <= len(before) - kept
        assert workers == 2 or not again
    assert len(drawn(notes)) == UNITS + 1


def test_a_worker_that_is_killed_keeps_what_was_done(tmp_path: Path, notes: Path, undisturbed: Table) -> None:
    """By the system, for want of memory, say: a short error, and the next run goes on."""
    laboratory = Laboratory(tmp_path / "again", workers=2)
    (notes / "slowly").write_text("0.1")
    (notes / "die 9").touch()
    with pytest.raises(TocsinError, match="What was done is kept: run the same command again"):
        laboratory.run(toy(notes), Options(seed=3))
    assert 0 < done(tmp_path / "again") < UNITS
    (notes / "die 9").unlink()
    Laboratory(tmp_path / "again", workers=1).run(toy(notes), Options(seed=3))
    assert read_table(tmp_path / "again" / "toy.csv") == undisturbed


def alive(session: int) -> list[str]:
    """The processes of a session that are still at work (and not just waiting to be collected)."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, its_session = stat.read_text().rpartition(") ")[2].split()[:4]
        except OSError:
            continue  # it has just left
        if int(its_session) == session and state != "Z":
            found.append(stat.parent.name)
    return found


def until(condition: Callable[[], bool]) -> None:
    """Wait for it."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.01)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs to see all processes")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_run_goes_on_where_it_was(tmp_path: Path, notes: Path, undisturbed: Table, workers: int) -> None:
    """SIGKILL in the middle: what the ledger held is not done again, the tables are as if nothing had happened, and no
    worker outlives the run."""
    folder = tmp_path / "killed"
    (notes / "slowly").write_text("0.3")
    script = (
        "from pathlib import Path; from test_laboratory import *; "
        f"Laboratory(Path({str(folder)!r}), workers={workers}).run(toy(Path({str(notes)!r})), Options(seed=3))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, env=environment, start_new_session=True) as process:
        until(lambda: done(folder) >= 4 or process.poll() is not None)
        process.kill()
        assert process.wait(PATIENCE) == -signal.SIGKILL
    until(lambda: not alive(process.pid))
    kept, before = done(folder), drawn(notes)
    assert 4 <= kept < UNITS
    assert set(before.values()) == {1}
    (notes / "slowly").unlink()
    Laboratory(folder, workers=1).run(toy(notes), Options(seed=3))
    assert read_table(folder / "toy.csv") == undisturbed
    assert len(drawn(notes)) == UNITS + 1
    # What was in hand, or waiting to be written.
    assert sum(times == 2 for times in drawn(notes).values()) == len(before) - kept
    assert set(drawn(notes).values()) <= {1, 2}


def test_other_work_is_not_taken_for_it(tmp_path: Path, notes: Path) -> None:
    """Another seed is other work; going back to the first finds it done."""
    laboratory = Laboratory(tmp_path / "lab", workers=1)
    means = []
    for seed in (3, 4, 3):
        laboratory.run(toy(notes), Options(seed=seed))
        means.append([row["mean"] for row in read_table(tmp_path / "lab" / "toy.csv")])
    assert means[0] == means[2] != means[1]
    assert sum(drawn(notes).values()) == 2 * (UNITS + 1)


def test_fresh_does_everything_again(tmp_path: Path, notes: Path, undisturbed: Table) -> None:
    """Once more each, with the same results."""
    Laboratory(tmp_path / "lab", workers=1).run(toy(notes), Options(seed=3))
    Laboratory(tmp_path / "lab", workers=1, fresh=True).run(toy(notes), Options(seed=3))
    assert set(drawn(notes).values()) == {2}
    assert read_table(tmp_path / "lab" / "toy.csv") == undisturbed


def test_results_of_several_versions_are_told(
    tmp_path: Path, notes: Path, undisturbed: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work that an earlier commit did keeps its name, and the table has both."""
    (notes / "break 5").touch()
    laboratory = Laboratory(tmp_path / "lab", workers=1)
    monkeypatch.setattr(provenance, "commit", lambda: "older")
    with pytest.raises(RuntimeError, match="broken"):
        laboratory.run(toy(notes), Options(seed=3))
    (notes / "break 5").unlink()
    monkeypatch.setattr(provenance, "commit", lambda: "newer")
    laboratory.run(toy(notes), Options(seed=3))
    assert {commit for commit, _ in laboratory.origins} == {"older", "newer"}
    assert {row["commit"] for row in read_table(tmp_path / "lab" / "toy.csv")} == {"newer, older"}


# Drawing


def test_drawing_reads_the_tables_alone(tmp_path: Path, notes: Path) -> None:
    """Without tables there is nothing to draw, and the error says what to do; with them no work is done."""
    laboratory = Laboratory(tmp_path / "lab", workers=1)
    with pytest.raises(InputError, match=r"There is no .*toy\.csv.*Run it without draw_only first"):
        laboratory.draw("toy", toy(notes))
    laboratory.run(toy(notes), Options())
    times = drawn(notes)
    assert Laboratory(tmp_path / "lab").draw("toy", toy(notes)) == f"{UNITS + 1} rows\n"
    assert (tmp_path / "lab" / "toy.md").read_text() == f"{UNITS + 1} rows\n"
    assert drawn(notes) == times


# Tables


def test_tables_survive_their_files(tmp_path: Path) -> None:
    """Whole numbers, numbers to the last bit, NaN, infinities, and words with commas, quotes and line ends."""
    rng = np.random.default_rng(0)
    table: Table = [
        {"whole": int(rng.integers(2**40)), "real": float(rng.standard_normal()) * 10.0**e, "word": word, "some": some}
        for e, word, some in zip((-300, 0, 300), ("plain", 'a, "b"', "é\nü"), (1, 2.5, math.nan), strict=True)
    ]
    write_table(tmp_path / "t.csv", table)
    found = read_table(tmp_path / "t.csv")
    assert [list(row) for row in found] == [["whole", "real", "word", "some"]] * 3
    for row, expected in zip(found, table, strict=True):
        assert (row["whole"], row["real"], row["word"]) == (expected["whole"], expected["real"], expected["word"])
        assert [type(row[name]) for name in ("whole", "real", "word", "some")] == [int, float, str, float]
    assert [row["some"] for row in found[:2]] == [1.0, 2.5]
    assert math.isnan(float(found[2]["some"]))
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_a_column_is_of_one_kind(tmp_path: Path) -> None:
    """One word among numbers makes words of all."""
    write_table(tmp_path / "t.csv", [{"a": 1, "b": math.inf}, {"a": "none", "b": -math.inf}])
    assert read_table(tmp_path / "t.csv") == [{"a": "1", "b": math.inf}, {"a": "none", "b": -math.inf}]


def test_a_table_is_replaced_whole(tmp_path: Path) -> None:
    """A row that cannot be written leaves the old file as it was."""
    write_table(tmp_path / "t.csv", [{"a": 1}])
    with pytest.raises(ValueError, match="b"):
        write_table(tmp_path / "t.csv", [{"a": 2}, {"b": 3}])
    assert read_table(tmp_path / "t.csv") == [{"a": 1}]


# The ledger


def test_the_ledger_gives_back_what_it_took(tmp_path: Path) -> None:
    """Arrays of any kind, bit for bit, from one opening to the next; until it is told to forget."""
    result: Result = {
        "floats": np.array([0.1, np.nan, -np.inf]),
        "small": np.arange(6, dtype=np.int32).reshape(2, 3),
        "words": np.array(["a", "bc"]),
        "empty": np.empty((0, 3)),
    }
    ledger = Ledger(tmp_path / "new folder" / "l.sqlite")
    assert "key" not in ledger
    ledger.add("key", result, commit="abc", machine="mine", seconds=1.0)
    ledger.close()
    ledger = Ledger(tmp_path / "new folder" / "l.sqlite")
    assert "key" in ledger
    assert ledger.origin("key") == ("abc", "mine")
    assert list(ledger["key"]) == list(result)
    for name, array in ledger["key"].items():
        assert array.dtype == result[name].dtype
        np.testing.assert_array_equal(array, result[name])
    ledger.add("key", {"other": np.zeros(1)}, commit="def", machine="mine", seconds=1.0)
    assert list(ledger["key"]) == ["other"]
    ledger.forget("key")
    ledger.forget("key")
    assert "key" not in ledger
    ledger.close()


@pytest.mark.parametrize("damage", ["text", "middle", "a result", "other"])
def test_a_damaged_ledger_is_refused(tmp_path: Path, notes: Path, damage: str) -> None:
    """As an error that names the file and the remedy, wherever the damage is."""
    laboratory, file = Laboratory(tmp_path, workers=1), tmp_path / "ledger.sqlite"
    laboratory.run(toy(notes), Options())
    content = bytearray(file.read_bytes())
    if damage == "text":
        file.write_text("not a database, " * 100)
    elif damage == "middle":
        content[4096:] = b"\xff" * (len(content) - 4096)
        file.write_bytes(content)
    elif damage == "a result":
        with sqlite3.connect(file) as database:
            database.execute("UPDATE done SET result = substr(result, 1, 300)")
        database.close()
    else:
        file.unlink()
        with sqlite3.connect(file) as database:
            database.execute("CREATE TABLE done (something TEXT)")
        database.close()
    with pytest.raises(StorageError, match=r"Cannot keep results in .*ledger\.sqlite.*remove it and run again"):
        laboratory.run(toy(notes), Options())


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path, notes: Path) -> None:
    """Before any work."""
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="or give another folder"):
        Laboratory(tmp_path / "file" / "lab", workers=1).run(toy(notes), Options())
    assert not drawn(notes)


# Keys and seeds


def test_keys_name_the_work() -> None:
    """Every field matters, and the kind of work; equal work has equal keys."""

    @dataclass(frozen=True)
    class Other(Draw):
        """The same fields."""

    units: list[Unit] = [Draw(1, 2, "a"), Draw(2, 2, "a"), Draw(1, 3, "a"), Draw(1, 2, "b"), Other(1, 2, "a")]
    assert len({unit.key for unit in units}) == len(units)
    assert Draw(1, 2, "a").key == Draw(number=1, seed=2, notes="a").key


def test_generators_are_named_by_numbers_and_words() -> None:
    """The same name gives the same numbers, another gives others. (But for a 0 at its end, which NumPy ignores.)"""
    names: list[tuple[int | str, ...]] = [(1, "a"), (1, "b"), (2, "a"), (1, "a", 1), (1, "a", 2), ("a", 1), (1, "ab")]
    draws = [generator(*name).random() for name in names]
    assert draws == [generator(*name).random() for name in names]
    assert len(set(draws)) == len(draws)


# Where figures come from


@pytest.mark.skipif(not (Path(__file__).parents[1] / ".git").exists(), reason="not in a working copy")
def test_a_working_copy_gives_its_commit() -> None:
    """Ten digits, with a + if files differ from it."""
    assert re.fullmatch(r"[0-9a-f]{10}\+?", provenance.commit())


def test_an_installed_package_gives_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of any working copy, inside of another project's, and where there is no git."""
    with monkeypatch.context() as patch:
        package = tmp_path / "site-packages" / "tocsin" / "_experiments"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        patch.setattr(provenance, "__file__", str(package / "provenance.py"))
        assert provenance.commit() == f"tocsin {__version__}"
        subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
        assert provenance.commit() == f"tocsin {__version__}"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert provenance.commit() == f"tocsin {__version__}"


def test_a_changed_working_copy_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A + when a file of the package differs from the commit, not when another does."""
    package = tmp_path / "src" / "tocsin" / "_experiments"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (tmp_path / "README").touch()
    author = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "--quiet"], ["add", "."], [*author, "commit", "--quiet", "-m", "first"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    monkeypatch.setattr(provenance, "__file__", str(package / "provenance.py"))
    clean = provenance.commit()
    assert re.fullmatch("[0-9a-f]{10}", clean)
    (tmp_path / "README").write_text("new")
    assert provenance.commit() == clean
    (package / "__init__.py").write_text("new")
    assert provenance.commit() == clean + "+"


def test_the_machine_in_words() -> None:
    """Processor, cores, system and Python."""
    words = provenance.machine().split("; ")
    assert len(words) == 4
    assert all(words)
    assert words[1] == f"{os.cpu_count()} cores"


@dataclass(frozen=True)
class Computed(Unit):
    """Tells what 'auto' stands for where it is done."""

    number: int

    def run(self) -> Result:
        return {"backend": np.array([compute.load("auto").backend])}


@pytest.mark.parametrize("workers", [1, 2])
def test_backends_have_results_of_their_own(tmp_path: Path, workers: int) -> None:
    """What computes is what was asked for, in worker processes too; it is told, and does not stay behind."""

    def measure(options: Options, perform: Perform) -> Tables:
        (result, _) = perform("computed", [Computed(0), Computed(1)])
        return {"computed": [{"by": str(result["backend"][0])}]}

    experiment = Experiment("what computes", ("computed",), measure, lambda tables, folder: "")
    for backend in ("numpy", "numba"):
        laboratory = Laboratory(tmp_path, workers=workers, backend=backend)
        laboratory.run(experiment, Options())
        (row,) = read_table(tmp_path / "computed.csv")
        assert (row["by"], row["backend"]) == (backend, backend)
    assert compute.BACKEND_VARIABLE not in os.environ
