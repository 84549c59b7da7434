"""The site that `make docs` builds: every link of the pages works in it, and it needs no network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[2]
PAGES = sorted(page for place in ("*.md", "docs/**/*.md", "examples/*.md") for page in ROOT.glob(place))
OUTER = r"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"'\s>]+)"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("material") is None:
        pytest.skip("no mkdocs-material: pip install -e '.[docs]'")
    built = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", built],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return built


def test_every_page_of_the_docs_is_in_the_site(site: Path):
    pages = [page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")]
    assert [str(page) for page in pages if not (site / page).exists()] == []
    assert list(site.rglob("*.py")) == []


def test_no_page_of_the_site_loads_anything_from_a_network(site: Path):
    outer = {link for page in site.rglob("*.html") for link in re.findall(OUTER, page.read_text(encoding="utf-8"))}
    assert outer == set()


def test_a_link_to_a_file_outside_of_the_docs_leads_to_its_listing(site: Path):
    page = (site / "howto" / "add-a-backend.html").read_text(encoding="utf-8")
    (link,) = set(re.findall(r'href="([^"]*/recorded\.py\.html)"', page))
    listing = (site / "howto" / link).resolve()
    assert listing.is_relative_to(site.resolve())
    assert "class" in listing.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_lists_and_tables_have_an_empty_line_before_them(page: Path):
    """Without it GitHub shows a list, and the site one long paragraph."""
    text = re.sub(r"(?ms)^```.*?^```", "", page.read_text(encoding="utf-8"))
    text = re.sub(r"(?m)^( {2,}\S.*|#.*|<!--.*)$", "", text)  # what goes on a list, headings, marks
    assert re.findall(r"(?m)^(?![-*|]|\d+\. )\S.*\n(?:[-*] |\d+\. |\|).*", text) == []
