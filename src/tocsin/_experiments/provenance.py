"""Where figures come from: the commit, and the machine in words."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from tocsin import __version__


def commit() -> str:
    """The commit of a working copy (with a + where files differ from it), or the version of an installed package."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=here, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # not some other project's repository around this package
        changed = git("status", "--porcelain", "--untracked-files=no", "--", str(here.parent))
        return git("rev-parse", "--short=10", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return f"tocsin {__version__}"


def machine() -> str:
    """Processor, cores and system."""
    return f"{_processor()}; {os.cpu_count()} cores; {platform.system()}; Python {platform.python_version()}"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
