"""Trials on anything that speaks the Open Inference Protocol v2: MLServer, Triton, KServe, TorchServe, OpenVINO ..."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mlcd.clouds.launches import before_ordering
from mlcd.clouds.load.oip import Oip, speak, targets
from mlcd.clouds.local.apart import OwnPlace
from mlcd.clouds.local.workplace import Workplace, workplace
from mlcd.clouds.serving.examples import from_server
from mlcd.clouds.serving.trial import Pace, Trials, arrivals_of, service_of
from mlcd.core.backend import Events, Launch, Provenance
from mlcd.core.clock import Clock
from mlcd.core.errors import BackendError, UnknownName, UserError
from mlcd.core.job import SUBMITTED, Job
from mlcd.planners.serve.knobs import Knob
from mlcd.planners.serve.nouns import Endpoint, knobs_of

OURS = ("concurrency",)
"""Knobs of the load, not of the server."""
READY_WITHIN_S = 1.0
"""A server that is asked whether it is ready and does not say so by then is not: it may hang, and time goes on."""


@dataclass(frozen=True)
class OpenInference:
    """Loads a model of a server at http://host:port or grpc://host:port.

    The endpoint's command starts that server for each trial, with `{knob}` where a knob's value goes; the values are
    in its environment, too (MLCD_KNOB_THREADS). Without one, the server is running already. `home`: where launches
    are kept.
    """

    endpoint: Endpoint
    home: Path
    clock: Clock
    pace: Pace = field(default_factory=Pace)
    answers_within_s: float = 5.0

    provenance = Provenance.LIVE

    def run(self, job: Job, launch: Launch) -> Events:
        """Start the server if there is a command, load it, tear it down."""
        service, knobs = service_of(job), dict(knobs_of(launch.configuration))
        arrivals, server = arrivals_of(service, knobs, launch.ordinal), self._speak(self.answers_within_s)
        with before_ordering():
            command = self._filled_in(knobs)
            if command and server.is_ready():
                raise UserError(
                    f"{self.endpoint.url}: something answers there before the command was run: end it first"
                )
            if not command:
                self.check()
        with self._trials.begun(launch) as trial:
            if command:
                place: Workplace = OwnPlace(Path(job.folder or "."))
                if job.folder == SUBMITTED:
                    place = workplace(job, launch, self.home, trial.folder)
                started = trial.start(["sh", "-c", command], _environment(knobs), place)
                if (ended := trial.until_ready(started, self._speak(READY_WITHIN_S).is_ready)) is not None:
                    yield ended
                    return
            asked = from_server(server, service, Path(job.folder))
            yield from trial.loaded(targets(server, asked, server.takes_bytes()), arrivals)

    def check(self) -> None:
        """UserError, on one line, unless the server is there and says what its model is."""
        server = self._speak(self.answers_within_s)
        try:
            server.inputs()
        except BackendError as error:
            raise UserError(f"{error}; start the server, or say how with a command") from None
        if not server.is_ready():
            raise UserError(f"{self.endpoint.url}: '{self.endpoint.model}' is not ready: look into the server's log")

    def reclaim(self, label: str) -> float | None:
        """Tear down what a crash left of a trial."""
        return self._trials.reclaim(label)

    def leftovers(self) -> set[str]:
        """Trials of which anything is left."""
        return self._trials.leftovers()

    def _speak(self, within_s: float) -> Oip:
        return speak(self.endpoint.url, self.endpoint.model, within_s)

    @property
    def _trials(self) -> Trials:
        return Trials(self.home, self.clock, self.pace)

    def _filled_in(self, knobs: Mapping[str, Knob]) -> str:
        """The command with these values in it."""
        if not self.endpoint.command:
            for name in knobs:
                if name not in OURS:
                    raise UserError(f"knob '{name}': a server that is running already cannot be set: give its command")
            return ""

        def value(place: re.Match[str]) -> str:
            if place[1] not in knobs:
                raise UnknownName("knob in the command", place[1], knobs)
            return shlex.quote(str(knobs[place[1]]))

        return re.sub(r"(?<!\$)\{(\w+)\}", value, self.endpoint.command)  # ${THIS} is the shell's


def _environment(knobs: Mapping[str, Knob]) -> dict[str, str]:
    return {f"MLCD_KNOB_{name.upper()}": str(value) for name, value in knobs.items()}
