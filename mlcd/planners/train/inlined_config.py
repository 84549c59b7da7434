"""Inline the model's config.json into a job file, for a service that cannot read the user's other files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml

from mlcd.planners.modeling.architecture import FILE


def with_inlined_config(text: str, folder: Path) -> str:
    """The text of a job file with the content of its model's config in place of the path.

    It stays on one line, so that error messages still name the right lines of the user's file.
    """
    job = yaml.safe_load(text)
    block = job.get("mlcd") if isinstance(job, dict) else None
    model = block.get("model") if isinstance(block, dict) else None
    named = model.get("config") if isinstance(model, dict) else None
    if not isinstance(named, str):
        return text
    path = folder / Path(named).expanduser()
    config = json.loads((path / FILE if path.is_dir() else path).read_text(encoding="utf-8"))
    where = re.compile(rf"(\bconfig:\s*)([\"']?){re.escape(named)}\2(?=[\s,}}#]|$)")
    return where.sub(lambda found: found[1] + json.dumps(config), text, count=1)
