"""What an alarm sets off: a command, or a webhook. It happens in the background, so that watching goes on."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from urllib.parse import urlsplit

from tocsin._cli.cleaning import clean
from tocsin._cli.outbox import Alarm, Outbox
from tocsin._common.errors import InputError
from tocsin._common.wording import counted

WAY = "action"
"""What an outbox calls this way of telling."""

LAST_WAIT = 30.0
"""Seconds that the end of a watch waits for actions that are still under way."""

PATIENCE = 1.0
"""Seconds of that wait before it is told."""

TRIES, BACKOFF, TIMEOUT = 3, 1.0, 10.0
"""How often an action is tried, seconds before the second time (twice as many before the third), and seconds that a
webhook may take to answer."""

COMMAND_TIMEOUT = 60.0
"""Seconds that a command may take, unless told otherwise; then it is ended."""

MOST_OUTPUT = 4000
"""Characters that are shown of what a command printed: the last ones."""

Tell = Callable[[str], None]


class Actions:
    """Calls a command or a webhook for each alarm of an outbox, one at a time and in order, in a thread of its own.

    What fails is tried again, and stays in the outbox: once more before each later alarm, and by the next watch.

    target: an address that begins with http:// or https://, or a command for the shell.  tell: where trouble goes, and
    what a command prints.  timeout: seconds for a command.
    """

    def __init__(self, target: str, tell: Tell, outbox: Outbox, timeout: float = COMMAND_TIMEOUT) -> None:
        if not target.strip():
            raise InputError("--on-alarm is empty; give a command, or an address that begins with http:// or https://.")
        webhook = target.startswith(("http://", "https://"))
        if webhook and not urlsplit(target).hostname:
            raise InputError(f"--on-alarm {target}: the address names no host.")
        self._act: Callable[[Alarm], str | None] = Webhook(target) if webhook else Command(target, tell, timeout)
        self._outbox = outbox
        self._failed: list[str] = []  # the one that was tried last comes last
        self._tell: Tell = lambda text: tell(f"tocsin: {text}")
        self.finished = False
        self._news, self._idle = Event(), Event()  # an interrupted join would take the thread for dead
        Thread(target=self._work, daemon=True).start()

    def ring(self) -> None:
        """There are alarms in the outbox; returns at once."""
        self._news.set()

    def finish(self, limit: float = LAST_WAIT) -> None:
        """Wait for actions that are still under way, and tell of those that were not done."""
        self.finished = True
        self._news.set()
        try:
            if not self._idle.wait(min(PATIENCE, limit)):
                self._tell(f"Waiting for --on-alarm, up to {limit:.0f} s; Ctrl-C to leave at once.")
                self._idle.wait(limit)
        finally:
            if not self._idle.is_set():
                behind = counted(max(len(self._new()) - 1, 0), "alarm")
                self._tell(f"--on-alarm is still busy and is left to itself; {behind} behind it had no effect.")

    def _new(self) -> list[Alarm]:
        """Alarms that have not been tried yet."""
        return [alarm for alarm in self._outbox.waiting(WAY) if alarm["id"] not in self._failed]

    def _work(self) -> None:
        while True:
            self._news.clear()
            new = self._new()
            if new:
                self._try_again()
                self._try(new[0])
            elif self.finished:
                self._idle.set()
                return
            else:
                self._news.wait()

    def _try_again(self) -> None:
        """What failed before, up to the next failure."""
        waiting = {alarm["id"]: alarm for alarm in self._outbox.waiting(WAY)}
        self._failed = [own for own in self._failed if own in waiting]
        while self._failed:
            alarm = waiting[self._failed[0]]
            if self._trouble(alarm) is not None:
                self._failed = [*self._failed[1:], alarm["id"]]
                return
            self._outbox.told(alarm, WAY)
            self._failed = self._failed[1:]

    def _try(self, alarm: Alarm) -> None:
        trouble: str | None = None
        for attempt in range(TRIES):
            if attempt:
                Event().wait(BACKOFF * 2 ** (attempt - 1))
            trouble = self._trouble(alarm)
            if trouble is None:
                self._outbox.told(alarm, WAY)
                return
        self._failed = [*self._failed, alarm["id"]]
        with suppress(Exception):  # that it cannot be told is no reason to leave later alarms alone
            self._tell(f"--on-alarm failed for the alarm at observation {alarm['row']}, {TRIES} times: {trouble}")

    def _trouble(self, alarm: Alarm) -> str | None:
        """Act; what went wrong, if anything."""
        try:
            return self._act(alarm)
        except Exception as error:
            return f"{str(error) or type(error).__name__}."


class Command:
    """A command, run by the shell with the alarm as JSON on its standard input and in TOCSIN_... variables."""

    def __init__(self, command: str, tell: Tell, timeout: float = COMMAND_TIMEOUT) -> None:
        self._command, self._tell, self._timeout = command, tell, timeout

    def __call__(self, alarm: Alarm) -> str | None:
        """Run it; what went wrong, if anything."""
        # A file takes what it prints: a pipe would be held open by whatever the command leaves in the background.
        with tempfile.TemporaryFile() as output:
            try:
                process = subprocess.Popen(
                    self._command,
                    shell=True,
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **variables(alarm)},
                    start_new_session=True,  # Ctrl-C ends the watch, not what an alarm has set off
                )
            except (OSError, ValueError) as error:
                return f"{error}."
            try:
                process.communicate(json.dumps(alarm).encode() + b"\n", self._timeout)
                status = process.returncode
                trouble = None if status == 0 else f"the command ended with status {status}."
            except subprocess.TimeoutExpired:
                _end(process)
                trouble = f"the command took more than {self._timeout:g} s, and was ended (--timeout)."
            output.seek(0)
            printed = output.read().decode(errors="replace").rstrip()
        if printed:
            self._tell(printed[-MOST_OUTPUT:])
        return trouble


def _end(process: subprocess.Popen[bytes]) -> None:
    """A command and what it has started."""
    with suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.communicate()


def variables(alarm: Alarm) -> dict[str, str]:
    """An alarm for the environment of a command: what is a number or a text in it."""
    plain = {name: value for name, value in alarm.items() if isinstance(value, str | int | float)}
    return {f"TOCSIN_{name.upper()}": clean(str(value)) for name, value in plain.items() if name != "event"}


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirected POST would arrive as a GET, without the alarm."""

    def redirect_request(self, *_: object) -> None:
        return None


class Webhook:
    """An address to which the alarm is sent as JSON."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._opener = urllib.request.build_opener(_NoRedirects)

    def __call__(self, alarm: Alarm) -> str | None:
        """Send it; what went wrong, if anything. The path of an address may be a secret, so only its host is told."""
        try:
            self._send(alarm)
            return None
        except urllib.error.HTTPError as error:
            trouble = f"it answered {error.code} {error.reason}"
            error.close()
        except urllib.error.URLError as error:
            trouble = str(error.reason)
        except (OSError, http.client.HTTPException, ValueError) as error:
            trouble = str(error) or type(error).__name__
        return f"{urlsplit(self._address).hostname} did not take it: {trouble}."

    def _send(self, alarm: Alarm) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": "tocsin"}
        request = urllib.request.Request(self._address, json.dumps(alarm).encode(), headers)
        with self._opener.open(request, timeout=TIMEOUT) as answer:
            answer.read(1)
