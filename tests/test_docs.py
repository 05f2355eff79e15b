"""What README, docs and docstrings show can be typed: Python, and lines of plain blocks, run, or are named here.

The blocks of a page run in order, in one namespace and one folder, as a reader would type them. A plain block, fenced
or indented, is what one types in a shell; what is only to be read (answers, formulas, pictures) is `text`.
"""

from __future__ import annotations

import doctest
import importlib
import io
import re
import shlex
import shutil
import signal
import warnings
from contextlib import redirect_stdout
from pathlib import Path
from textwrap import dedent

import pytest

import tocsin
from tocsin._cli import main
from tocsin._common.errors import MissingExtraError
from waiting import instead_of_waiting

ROOT = Path(__file__).parents[1]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/results").glob("*.md")),
]
FENCED = r"^ *```([^\n]*)\n(.*?)^ *```$"
INDENTED = r"(?<=\n\n)((?: {4}[^\n]*\n)+)"
BLOCK = re.compile(f"{FENCED}|{INDENTED}", re.MULTILINE | re.DOTALL)
LANGUAGES = ("python", "", "text")

ROWS = """
import numpy as np
import tocsin
rng = np.random.default_rng(0)
reference, stream = rng.normal(size=(300, 3)), np.concatenate([rng.normal(size=(60, 3)), rng.normal(2, size=(40, 3))])
"""
FITTED = ROWS + "detector = tocsin.Detector(500, window=[8, 25], interval=False, seed=1).fit(reference)\n"
FILES = FITTED + "detector.save('pump.tocsin')\n"
TABLE = """
import numpy as np, pandas as pd, tocsin
rng = np.random.default_rng(0)
born = pd.Timestamp("1970-01-01") + pd.to_timedelta(rng.integers(0, 9999, 300), "D")
reference = pd.DataFrame({"postcode": rng.integers(1, 5, 300), "born": born, "row_id": range(300)})
reference["age"] = rng.normal(size=300)
block = reference[:50]
"""

CONTEXT = (
    ROWS
    + """
for name, own in (("reference", reference), ("stream", stream)):
    np.savetxt(f"{name}.csv", own, delimiter=",", header="flow,pressure,current", comments="")
"""
)

PUMPS = """
import numpy as np, pandas as pd
rng = np.random.default_rng(1)
names, pump = ["flow", "pressure"], np.repeat(np.arange(8), 150)
rows = 20 * rng.normal(size=(8, 2))[pump] + rng.normal(size=(1200, 2))
pd.DataFrame(rows, columns=names).assign(pump=pump).to_csv("pumps.csv", index=False)
pd.DataFrame(rng.normal(size=(100, 2)) + 40, columns=names).to_csv("new.csv", index=False)
"""

GIVEN = {
    "README": ROWS,
    "context": CONTEXT,
    "coming-from-alibi-detect": ROWS + "x_ref, batch = reference, stream\n",
    "compare": ROWS + "january, february = reference, stream\n",
    "data": TABLE,
    "explanations": FITTED + "detector.update_until_alarm(stream[:-1])\nx = stream[-1]\n",
    "fleet": FILES,
    "gpu": ROWS + "block, steps = stream, rng.normal(size=(2, 10_000, 3))\n",
    "how-it-works": ROWS,
    "own-baselines": PUMPS,
    "report": FITTED + "np.savetxt('today.csv', stream, delimiter=',')\ndetector.save('machine.tocsin')\n",
}
"""What a page takes for granted, in Python."""

NOT_RUN = {
    "from alibi_detect.cd": "another library's",
    'detector.fit(reference, cluster="tcp://': "needs a cluster",
    "tocsin fit reference.csv -o pump.tocsin --ert 5000 --error 0.005 --cluster": "needs a cluster",
    "detector = Detector(ert=1000, preprocess=[SentenceEmbedding(": "needs a model from the network",
    "dask scheduler": "needs a cluster",
    "dask worker": "needs a cluster",
    "make ": "installs, or takes minutes",
    "nvidia-cuda-mps-control": "needs a GPU",
    "pip install": "needs the network",
    "python -m benchmarks.": "takes minutes",
    "tocsin reproduce contexts": "needs recordings",
    "tocsin reproduce calibration": "takes most of an hour",
    "tocsin reproduce explanations": "takes ten minutes",
    "tocsin reproduce imaging": "needs pictures",
    "tocsin reproduce intervals": "takes an hour",
    "tocsin reproduce memories": "takes an hour",
    "tocsin reproduce power": "takes most of an hour",
    "tocsin reproduce qq": "takes most of an hour",
    "tocsin reproduce rare": "takes an hour",
    "tocsin reproduce simulated-streams": "takes a quarter of an hour",
    "tocsin reproduce streams": "needs recordings",
    "tocsin reproduce table1": "takes most of an hour, and a minute with --quick; or needs a cluster",
    "tocsin reproduce window-sharing": "takes minutes",
    "def write(answer, batch)": "needs a database",
    "report = ts.fit(reference_frame": "a variant of the page's first block, run in test_spark",
    "answer = ts.watch(readings, new_detector": "a variant of the page's first block, run in test_spark",
    "raw = (": "needs Kafka",
}
"""By how they begin."""

EXTRAS = {
    "spark": ("pyspark", "pandas", "pyarrow"),
    "integrations": ("river", "sklearn"),
    "representations": ("sklearn", "torch"),
    "context": ("sklearn",),
    "data": ("pandas",),
    "report": ("matplotlib",),
    "results/paper": ("matplotlib",),
}


def name_of(page: Path) -> str:
    """As it is called here: README, gpu, results/gpu."""
    return page.relative_to(ROOT).with_suffix("").as_posix().removeprefix("docs/")


def blocks(page: Path) -> list[tuple[int, str, str]]:
    """Line, language and text of each."""
    return blocks_in(page.read_text(encoding="utf-8"))


def blocks_in(text: str) -> list[tuple[int, str, str]]:
    found = []
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        indented = block[3] is not None
        found.append((line, "", dedent(block[3])) if indented else (line + 1, block[1], dedent(block[2])))
    return found


def strange(page: list[tuple[int, str, str]]) -> list[str]:
    """Blocks in languages, and typed lines, that nothing here knows what to do with."""
    found = [f"line {line}: a block of {language!r}" for line, language, _ in page if language not in LANGUAGES]
    typed = [(line + i, each) for line, kind, text in page if kind == "" for i, each in enumerate(text.splitlines())]
    return found + [
        f"line {line}: {each}" for line, each in typed if each and not each.startswith("tocsin ") and not named(each)
    ]


def named(text: str) -> bool:
    return any(text.startswith(beginning) for beginning in NOT_RUN)


def run(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that a page shows, in the present folder."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    exec(GIVEN.get(name_of(page), ""), namespace)
    for line, language, text in blocks(page):
        if language == "python" and not named(text):
            # Blank lines before it, so that a traceback has the line of the page.
            exec(compile("\n" * (line - 1) + text, str(page), "exec"), namespace)
        for typed in text.splitlines() if language == "" else []:
            if typed.startswith("tocsin ") and not named(typed):
                with monkeypatch.context() as patched:
                    if "--follow" in typed:
                        shutil.copy("stream.csv", "log.csv")
                        instead_of_waiting(patched, lambda _: signal.raise_signal(signal.SIGINT))
                    patched.setattr("sys.argv", shlex.split(typed, comments=True))
                    with pytest.raises(SystemExit) as ended:
                        main()
                assert ended.value.code in (0, 1), typed


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_shows_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for extra in EXTRAS.get(name_of(page), ()):
        pytest.importorskip(extra)
    if name_of(page) == "spark" and not shutil.which("java"):
        pytest.skip("Spark needs Java")
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")  # what a fit has to say of its reference
        run(page, monkeypatch)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_shows_is_run_or_named(page: Path) -> None:
    assert strange(blocks(page)) == []


def test_what_is_strange_is_seen() -> None:
    """Languages that nobody knows, lines that are no commands of ours, indented or in a list; and where they are."""
    page = """One
```bash
tocsin fit
```

    tocsin demo
    rm -rf

- A list:

  ```
  make demo

  ls
  ```

```python
if x:

    pass
```
"""
    assert blocks_in(page)[-1] == (18, "python", "if x:\n\n    pass\n")
    assert strange(blocks_in(page)) == ["line 3: a block of 'bash'", "line 7: rm -rf", "line 14: ls"]


def test_nothing_is_named_in_vain() -> None:
    """What is not run is there, and begins a block or a line."""
    texts = [text for page in PAGES for _, _, text in blocks(page)]
    lines = [line for text in texts for line in text.splitlines()]
    for beginning in NOT_RUN:
        assert any(text.startswith(beginning) for text in [*texts, *lines]), beginning


SOURCE = Path(tocsin.__file__).parent
SHOWING = [file for file in sorted(SOURCE.rglob("*.py")) if ">>> " in file.read_text(encoding="utf-8")]


@pytest.mark.parametrize("file", SHOWING, ids=lambda file: str(file.relative_to(SOURCE)))
def test_what_docstrings_show_is_so(file: Path) -> None:
    parts = file.relative_to(SOURCE.parent).with_suffix("").parts
    try:
        module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
    except MissingExtraError as missing:
        pytest.skip(str(missing))
    told = io.StringIO()
    runner = doctest.DocTestRunner()
    for test in doctest.DocTestFinder().find(module):
        runner.run(test, out=told.write)
    assert runner.tries
    assert not runner.failures, told.getvalue()
