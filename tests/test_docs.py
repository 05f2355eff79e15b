"""What README and docs show can be typed: every block of Python, and every `tocsin ...` line, runs, or is named here.

The blocks of a page run in order, in one namespace and one folder, as a reader would type them.
"""

from __future__ import annotations

import io
import re
import shlex
import shutil
import warnings
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest

from tocsin._cli import main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)

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

GIVEN = {
    "README": ROWS,
    "coming-from-alibi-detect": ROWS + "x_ref, batch = reference, stream\n",
    "compare": ROWS + "january, february = reference, stream\n",
    "data": TABLE,
    "explanations": FITTED + "detector.update_until_alarm(stream[:-1])\nx = stream[-1]\n",
    "fleet": FILES,
    "gpu": ROWS + "block, steps = stream, rng.normal(size=(2, 10_000, 3))\n",
    "how-it-works": ROWS,
    "report": FITTED + "np.savetxt('today.csv', stream, delimiter=',')\ndetector.save('machine.tocsin')\n",
}
"""What a page takes for granted, in Python."""

NOT_RUN = {
    "from alibi_detect.cd": "another library's",
    'detector.fit(reference, cluster="tcp://': "needs a cluster",
    "tocsin fit reference.csv -o pump.tocsin --ert 5000 --error 0.005 --cluster": "needs a cluster",
    "tocsin reproduce table1 --cluster": "needs a cluster",
    "tocsin watch pump.tocsin log.csv --follow": "does not end",
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
    "data": ("pandas",),
    "report": ("matplotlib",),
}


def blocks(page: Path) -> list[tuple[int, str, str]]:
    """Line, language and text of each."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, found.start()) + 2, found[1], found[2]) for found in BLOCK.finditer(text)]


def named(text: str) -> bool:
    return any(text.startswith(beginning) for beginning in NOT_RUN)


def run(page: Path) -> int:
    """Everything that a page shows, in the present folder; how much that was."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    exec(GIVEN.get(page.stem, ""), namespace)
    done = 0
    for line, language, text in blocks(page):
        if language == "python" and not named(text):
            # Blank lines before it, so that a traceback has the line of the page.
            exec(compile("\n" * (line - 1) + text, str(page), "exec"), namespace)
            done += 1
        for typed in text.splitlines() if language == "" else []:
            if typed.startswith("tocsin ") and not named(typed):
                with patch("sys.argv", shlex.split(typed, comments=True)), pytest.raises(SystemExit) as ended:
                    main()
                assert ended.value.code in (0, 1), typed
                done += 1
    return done


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for extra in EXTRAS.get(page.stem, ()):
        pytest.importorskip(extra)
    if page.stem == "spark" and not shutil.which("java"):
        pytest.skip("Spark needs Java")
    monkeypatch.chdir(tmp_path)
    shown = [text for _, language, text in blocks(page) if language == "python" and not named(text)]
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")  # what a fit has to say of its reference
        assert run(page) >= len(shown)


def test_nothing_is_named_in_vain() -> None:
    """What is not run is there, and begins a block or a line."""
    texts = [text for page in PAGES for _, _, text in blocks(page)]
    lines = [line for text in texts for line in text.splitlines()]
    for beginning in NOT_RUN:
        assert any(text.startswith(beginning) for text in [*texts, *lines]), beginning
