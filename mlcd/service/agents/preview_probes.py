"""Previews the first probes of an agent's search. Computed in a child process, since the job file is untrusted."""

import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from mlcd.core.ledger import Ledger
from mlcd.core.runs.run import first_entry, first_probes
from mlcd.core.strategy import Finish
from mlcd.planners.form.jobs import job_from_text
from mlcd.service.web.untrusted_input import SPACE, in_child_process


def preview_probes(kind: str, text: str, options: Mapping[str, Any], recordings: Mapping[str, Path]) -> list[Any]:
    """The first probes as JSON objects; `UserError` if only the place itself could compute them."""
    named = {name: str(path) for name, path in recordings.items()}
    answer: list[Any] = json.loads(in_child_process("the job", SPACE, _probes, kind, text, dict(options), named))
    return answer


def _probes(kind: str, text: str, options: dict[str, Any], recordings: dict[str, str]) -> str:
    job = job_from_text(kind, text, options)
    place, _, name = job.on.partition(":")
    if place == "recorded":
        job = job_from_text(kind, text, {**options, "on": f"recorded:{recordings[name]}"})
    with closing(Ledger(None)) as ledger:
        first, _ = first_entry(job, ledger)
    probes, previews = first_probes(first), []
    for probe in () if isinstance(probes, Finish) else probes:
        seconds, usd = first.space.worst_probe(probe.configuration)
        words = {"configuration": str(probe.configuration), "because": probe.because}
        previews.append(words | {"at_most_usd": usd, "at_most_s": seconds})
    return json.dumps(previews)
