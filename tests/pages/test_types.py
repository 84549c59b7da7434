"""The types that the pages are written with are those of the API's document."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from mlcd.service.web.app import api_document

PAGES = Path(__file__).parents[2] / "pages"


def test_the_types_of_the_pages_are_made_from_the_document_of_the_api(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None or not (PAGES / "node_modules" / "openapi-typescript").is_dir():
        pytest.skip("the pages' tools are not here: apt install npm, then npm ci in pages/")
    made, document = tmp_path / "api.ts", json.dumps(api_document())
    command = [node, "types.mjs", str(made)]
    done = subprocess.run(command, cwd=PAGES, input=document, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert made.read_text() == (PAGES / "src" / "types" / "api.ts").read_text(), "make them again: npm run types"
