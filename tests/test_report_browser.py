"""The report in a browser."""

from __future__ import annotations

import datetime
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from reported import Page, reported
from tocsin import Detector

pytestmark = pytest.mark.usefixtures("quick_fits")

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

in_a_browser = pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A detector, a stream that changes, and the report; not to be changed."""
    return reported(tmp_path_factory.mktemp("report"))


def browse(address: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Open a page in Chromium, give its scripts time to run, and leave."""
    assert BROWSER is not None
    flags = [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", f"--user-data-dir={folder / 'profile'}",
        "--enable-logging=stderr", "--v=0", "--virtual-time-budget=3000",
    ]  # fmt: skip
    return subprocess.run([BROWSER, *flags, *options, address], capture_output=True, text=True, timeout=120, check=True)


def complaints(run: subprocess.CompletedProcess[str]) -> list[str]:
    """What a page's console says."""
    return [line for line in run.stderr.splitlines() if "CONSOLE" in line]


@in_a_browser
def test_it_renders_and_follows_links_into_the_path(folder: Path, tmp_path: Path) -> None:
    """Without a complaint; the path is drawn by the script, at the rows that the address names."""
    run = browse(f"file://{folder / 'r.html'}#rows=101-300", tmp_path, "--dump-dom", "--window-size=1280,800")
    assert complaints(run) == []
    assert re.search(r'<canvas class="main"[^>]*aria-label="Observations 101 to 300"', run.stdout)
    assert "<output>Observations 101 to 300</output>" in run.stdout


@in_a_browser
def test_times_are_told_with_rows(tmp_path: Path) -> None:
    """By the script as by the rest of the page: to the minute, where times are whole ones."""
    rng = np.random.default_rng(0)
    begin = datetime.datetime(2019, 3, 7, 14, 20)
    rows = [
        {"time": (begin + datetime.timedelta(minutes=10 * i)).isoformat(), "x": float(rng.normal())} for i in range(400)
    ]
    detector = Detector(1e5, window=5, paths=200, seed=0).fit(rows[:200], progress=False)
    page = detector.report(rows[200:], tmp_path / "r.html")
    run = browse(f"file://{page}#rows=1-100", tmp_path, "--dump-dom", "--window-size=1280,800")
    assert complaints(run) == []
    assert "<output>Observations 1 to 100 (2019-03-08 23:40 to 2019-03-09 16:10)</output>" in run.stdout


ACTIONS = """
(async () => {
  const canvas = document.querySelector("canvas.main"), box = canvas.getBoundingClientRect();
  const at = part => ({clientX: box.left + 46 + part * (box.width - 110), clientY: box.top + 50, bubbles: true});
  const step = async () => {
    await new Promise(done => setTimeout(done, 100));
    return canvas.getAttribute("aria-label");
  };
  const said = {start: await step()};
  canvas.dispatchEvent(new WheelEvent("wheel", {...at(0.5), deltaY: -200, cancelable: true}));
  said.wheel = await step();
  canvas.setPointerCapture = () => {};
  const point = (name, id, part) => canvas.dispatchEvent(new PointerEvent(name, {...at(part), pointerId: id}));
  point("pointerdown", 1, 0.6); point("pointermove", 1, 0.4); point("pointerup", 1, 0.4);
  said.drag = await step();
  point("pointerdown", 1, 0.4); point("pointerdown", 2, 0.6); point("pointermove", 1, 0.2);
  point("pointermove", 2, 0.8); point("pointerup", 1, 0.2); point("pointerup", 2, 0.8);
  said.pinch = await step();
  point("pointermove", 1, 0.5); await step();
  said.hover = document.querySelector("output").textContent;
  canvas.dispatchEvent(new KeyboardEvent("keydown", {key: "+"}));
  said.key = await step();
  canvas.dispatchEvent(new MouseEvent("dblclick", at(0.5)));
  said.reset = await step();
  document.querySelector("a.jump").click();
  said.jump = await step();
  said.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  document.body.setAttribute("data-said", JSON.stringify(said));
})();
"""


@in_a_browser
def test_the_path_zooms(folder: Path, tmp_path: Path) -> None:
    """By wheel, drag, two fingers, keys and links, on a phone; nothing is wider than the screen."""
    text = (folder / "r.html").read_text(encoding="utf-8")
    allowed = re.sub(r"script-src &#x27;[^&]*&#x27;", "script-src &#x27;unsafe-inline&#x27;", text)
    # Without a screen there are no frames to wait for.
    frames = "<script>requestAnimationFrame = action => setTimeout(action, 1);</script></head>"
    acted = allowed.replace("</head>", frames).replace("</body>", f"<script>{ACTIONS}</script></body>")
    (tmp_path / "r.html").write_text(acted, encoding="utf-8")
    run = browse(f"file://{tmp_path / 'r.html'}", tmp_path, "--dump-dom", "--window-size=390,844")
    assert complaints(run) == []
    said = json.loads(Page(run.stdout).all("body")[0]["data-said"] or "")
    views = {name: tuple(map(int, re.findall(r"\d+", said[name]))) for name in said if name not in ("hover", "wide")}
    assert views["start"] == views["reset"] == (1, 800)
    wheel, drag, pinch, key = (views[name] for name in ("wheel", "drag", "pinch", "key"))
    assert 350 < wheel[1] - wheel[0] < 450
    assert drag[0] - wheel[0] == pytest.approx(0.2 * (wheel[1] - wheel[0]), abs=3)
    assert (pinch[1] - pinch[0]) == pytest.approx((drag[1] - drag[0]) / 3, abs=3)
    assert (key[1] - key[0]) == pytest.approx((pinch[1] - pinch[0]) / 2, abs=3)
    assert re.fullmatch(r"Observation \d+: statistic [\d.e-]+, threshold [\d.]+", said["hover"])
    assert views["jump"] != views["reset"]
    assert said["wide"] <= 0


@in_a_browser
def test_it_prints(folder: Path, tmp_path: Path) -> None:
    """To PDF."""
    browse(f"file://{folder / 'r.html'}", tmp_path, f"--print-to-pdf={tmp_path / 'r.pdf'}")
    assert (tmp_path / "r.pdf").read_bytes().startswith(b"%PDF")
