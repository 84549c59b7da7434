"""`python tests/docs/pictures.py` takes the pictures of docs/images again, once the pages or a method have changed.

What they show is the example's run, with which `mlcd ui` begins where there is none. Needs Playwright and Chromium.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parents[2] / "docs" / "images"
CHROMIUM = "/usr/bin/chromium-headless-shell"
PICTURES = {
    "run.png": ("/runs/resnet50-1", "finished"),
    "explore.png": ("/runs/resnet50-1/explore?budget=250", "Decision under these limits"),
}
"""For each picture the address of the page, and words that are on it once it is complete."""


@contextmanager
def pages() -> Iterator[str]:
    """Where `mlcd ui` has the pages of a fresh machine."""
    with tempfile.TemporaryDirectory() as home:
        served = subprocess.Popen(
            [sys.executable, "-m", "mlcd", "ui", "--no-browser", "--port", "0"],
            env={**os.environ, "MLCD_HOME": home, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert served.stdout is not None
        try:
            yield next(found[1] for line in served.stdout if (found := re.search(r"(http://[\d.]+:\d+)", line)))
        finally:
            served.send_signal(signal.SIGINT)
            served.communicate(timeout=60)


if __name__ == "__main__":
    with pages() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 1143}, reduced_motion="reduce")
        for name, (address, complete) in PICTURES.items():
            page.goto(url + address)
            page.get_by_text(complete).first.wait_for(timeout=120_000)
            page.wait_for_timeout(3_000)  # until the last chart is drawn
            page.screenshot(path=IMAGES / name)
        browser.close()
