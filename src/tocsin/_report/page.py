"""The page: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import datetime
import hashlib
from dataclasses import dataclass
from importlib.resources import files

from tocsin import __version__
from tocsin._common.wording import counted
from tocsin._detector.detector import Detector
from tocsin._report import describing
from tocsin._report.alarms import alarm_section
from tocsin._report.gathering import Gathered
from tocsin._report.html import Markup, join, tag
from tocsin._report.power import power_section
from tocsin._report.sections import (
    calibration_section,
    path_section,
    promise_section,
    quality_section,
    verdict_section,
)
from tocsin._report.verdict import verdict

SCRIPTS = ("levels.js", "drawing.js", "zoom.js")


@dataclass(frozen=True)
class About:
    """What a page says besides what was seen.

    promise, precision, causes, facts: on the detector, in words.
    """

    title: str
    detector: str
    stream: str
    promise: str
    precision: str
    causes: str | None
    facts: list[tuple[str, str]]
    made: datetime.datetime
    interrupted: bool = False

    @classmethod
    def of(
        cls,
        detector: Detector,
        *,
        title: str,
        called: str,
        stream: str,
        precision: str | None = None,
        interrupted: bool = False,
    ) -> About:
        """A page that is made now.

        called: what the page calls the detector.  precision: in other words than the usual.
        """
        return cls(
            title=title,
            detector=called,
            stream=stream,
            promise=describing.promise(detector),
            precision=precision or describing.precision(detector),
            causes=describing.causes(detector),
            facts=list(describing.facts(detector)),
            made=datetime.datetime.now().astimezone(),
            interrupted=interrupted,
        )


def page(seen: Gathered, about: About) -> str:
    """All of it, as HTML."""
    said = verdict(seen)
    style, script = _resource("page.css"), "\n".join(_resource(name) for name in SCRIPTS)
    watched = f"{'W' if about.title == about.stream else f'{about.stream}, w'}atched by {about.detector}"
    stopped = f" Stopped after {counted(seen.rows, 'observation')}." if about.interrupted else None
    body = join(
        tag(
            "header",
            tag("p", "Tocsin report", class_="brand"),
            tag("h1", about.title),
            tag(
                "p",
                f"{watched}. {about.made:%d %B %Y, %H:%M}.",
                stopped,
                class_="quiet-text",
            ),
        ),
        tag(
            "main",
            verdict_section(said, seen),
            _section("promise", "The promise", promise_section(seen, about.promise, about.precision, about.causes)),
            _section("power", "What it can see", power_section(seen.detector.power_)),
            _section("path", "The path", path_section(seen)),
            tag("section", tag("h2", "Alarms"), alarm_section(seen), id="alarms"),
            _section("quality", "Data quality", quality_section(seen)),
            _section("calibration", "How it was calibrated", calibration_section(about.facts)),
        ),
        tag(
            "footer",
            tag(
                "p",
                f"Made by Tocsin {__version__} on {about.made:%Y-%m-%d %H:%M %Z}, seed {seen.detector.seed_}. This "
                "page needs no network: all it shows is in the file.",
            ),
        ),
        tag("script", Markup(script)),
    )
    head = join(
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"tocsin {__version__}"),
        tag("title", about.title),
        tag("link", rel="icon", href="data:,"),
        tag("style", Markup(style)),
    )
    return f"<!DOCTYPE html>\n{tag('html', tag('head', head), tag('body', body), lang='en')}\n"


def _section(name: str, title: str, content: Markup) -> Markup:
    return tag("section", tag("h2", title), content, class_="card", id=name)


def _resource(name: str) -> str:
    return files("tocsin._report").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Nothing is loaded, and nothing runs but the page's own style and script: data could not, even if they got in."""
    return f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'"


def _hash(content: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"
