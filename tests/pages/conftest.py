"""A browser, and what it looks at: `mlcd ui` and `mlcd service`, each in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium-headless-shell")
PATIENT_MS = 120_000
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium without windows, which takes half the CPU of the whole.

    For a module only: while it is there, no other test of this process can run a loop.
    """
    if not CHROMIUM.exists():
        pytest.skip("no Chromium: apt install chromium-headless-shell")
    if find_spec("playwright") is None:
        pytest.skip("no Playwright: pip install -e '.[dev]'")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page of somebody who was never here. What the page itself complains about fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(PATIENT_MS)
    opened, faults = context.new_page(), []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    yield opened
    opened.unroute_all(behavior="ignoreErrors")  # the page may still ask for news of its run
    context.close()
    assert faults == []


@pytest.fixture
def expect(browser: Any) -> Any:
    """Playwright's: it looks until what is expected is there."""
    from playwright.sync_api import expect

    expect.set_options(timeout=PATIENT_MS)
    return expect


@dataclass
class Served:
    """A process that serves the pages."""

    home: Path
    url: str
    first_words: list[str]


Serve = Callable[..., Served]


@pytest.fixture(scope="module")
def serve() -> Iterator[Serve]:
    """Starts `mlcd` with these arguments on a state folder, and waits for the line that says where it is."""
    started: list[subprocess.Popen[str]] = []

    def start(home: Path, *arguments: object, **environment: str) -> Served:
        process = subprocess.Popen(
            [sys.executable, "-m", "mlcd", *map(str, arguments)],
            env={**os.environ, "MLCD_HOME": str(home), "PYTHONUNBUFFERED": "1", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        said: list[str] = []
        for line in process.stdout:
            said.append(line)
            if found := re.search(r"MLCD (?:is at|serves) (http://[\d.]+:\d+)", line):
                return Served(home, found[1], said)
        raise AssertionError("".join(said))

    yield start
    for process in started:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=300)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def ui(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Served:
    """One person's pages, on a fresh machine: they begin with the run of the example."""
    return serve(tmp_path_factory.mktemp("fresh"), "ui", "--no-browser", "--port", "0")
