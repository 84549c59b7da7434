"""A language model as it is deployed: the engine, its version and flags as a trial ran them, and how many it lets in.

Requests at once beyond what was measured would break the caps, so the engine admits no more than that; the others wait
in its queue. Replicas are planned by `mlcd replicas`; a target that scales by itself is told what one takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from mlcd.core.errors import UserError, WrongState
from mlcd.core.ledger import Account
from mlcd.core.measurement import Measurement
from mlcd.planners.serve.llm.capacity import Replica, replica
from mlcd.planners.serve.llm.flags import NOT_IN_COMMAND, WITH_FLAGS, CommandLine, admitting, command_line
from mlcd.planners.serve.llm.nouns import LanguageModel
from mlcd.planners.serve.llm.replicas import LOAD_KNOBS, admitted, chosen_trial, levels_of
from mlcd.planners.serve.nouns import Knob, knobs_of, service_of
from mlcd.reports.deploy.deployment import PlacedKnob, line, slug
from mlcd.reports.serve.words import decision_sentence

PORT = 8000
ON_CPU = ("threads", "kv_cache_gb")
ON_GPU = ("gpu", "gpus", "tp", "pp", "dp", "ep", "memory_share")
SPLIT = "disagg"


@dataclass(frozen=True)
class Replicas:
    """How many there are to be: `at_least` always, `at_most` when it is busy."""

    at_least: int = 1
    at_most: int = 1


ONE_REPLICA = Replicas()


@dataclass(frozen=True)
class EngineDeployment:
    """A deployment that a run has tried. `model`: a name or a folder. `admitted`: requests at once, None if not known.

    `takes`: what one replica takes of random arrivals; None where no level keeps the caps or the lengths are not known.
    """

    run: str
    name: str
    sentence: str
    source: str
    model: str
    language: LanguageModel
    knobs: Mapping[str, Knob]
    admitted: int | None
    takes: Replica | None
    startup_s: float
    replicas: Replicas = ONE_REPLICA

    @property
    def engine(self) -> str:
        """The engine's name; empty where only its command is known."""
        return self.language.engine.name

    @property
    def version(self) -> str:
        """Of the engine, as it told it; without what follows a plus ('0.32.0+cpu')."""
        return self.language.engine.version.partition("+")[0].removeprefix("v")

    @property
    def is_folder(self) -> bool:
        """Whether the model is a folder or file of this machine, not a name that the engine downloads."""
        return self.model.startswith(("/", "./", "../", "~"))

    @property
    def gpus(self) -> int:
        """Of one engine; 0 on a CPU."""
        if any(name in self.knobs for name in ON_CPU) or not any(name in self.knobs for name in ON_GPU):
            return 0
        ranks = prod(int(self.knobs.get(name, 1)) for name in ("tp", "pp", "dp"))
        return ranks if self.split else max(ranks, int(self.knobs.get("gpus", 1)))

    @property
    def split(self) -> bool:
        """Whether prefill and decoding are on engines of their own."""
        return self.knobs.get("mode") == SPLIT

    def command(self, model: str | None = None, port: int = PORT) -> CommandLine:
        """What starts it. `model`: where the target has it, if elsewhere."""
        engine = self.language.engine
        name = self.name if self.is_folder or model is not None else ""
        return command_line(
            engine.name, model or self.model, self.with_admission(), start=engine.command, name=name, port=port
        )

    def with_admission(self) -> dict[str, Knob]:
        """The knobs, with a limit of requests at once among them."""
        return admitting(self.engine, self.knobs, self.admitted)

    def placed(self, made: CommandLine, fields: Mapping[str, str]) -> tuple[PlacedKnob, ...]:
        """Where each knob went: into the command line, or a field of the target."""
        placed = []
        for name, value in self.knobs.items():
            where = fields.get(name) or made.where.get(name, "")
            note = "" if where else made.notes.get(name, NOT_IN_COMMAND.get(name, "set it where it belongs"))
            if name == "sequences" and self.with_admission()[name] != value:
                note = f"no more than the {self.admitted} requests at once that were measured"
            placed.append(PlacedKnob(name, value, where, note))
        return tuple(placed)


def engine_deployment(
    run: str,
    account: Account,
    trial: int | None = None,
    concurrency: int | None = None,
    replicas: Replicas = ONE_REPLICA,
) -> EngineDeployment:
    """What a run has chosen, or the `trial`-th that it tried. `concurrency`: requests at once, if not the best level's.

    WrongState where there is nothing to deploy; UserError where there is no such trial or level.
    """
    job, service = account.job, service_of(account.job)
    if (language := service.language) is None:
        raise WrongState(f"run '{run}' serves an ONNX model: export it with --to kserve, triton or compose")
    m = _trial(run, account, trial)
    if language.engine.name not in WITH_FLAGS and not language.engine.command:
        raise WrongState(
            f"run '{run}' loaded an engine that ran already: MLCD does not know the command that started it"
        )
    levels = levels_of(m)
    if concurrency is not None and concurrency not in (tried := [level.concurrency for level in levels]):
        raise UserError(f"--concurrency {concurrency}: it was measured with {', '.join(map(str, tried))} at once")
    most = concurrency or admitted(job, m)
    up_to = [level for level in levels if most is not None and level.concurrency <= most]
    tokens = language.prompts.output_tokens if not language.prompts.file else 0
    decision = account.decision
    chosen = decision is not None and decision.configuration == m.configuration
    return EngineDeployment(
        run,
        slug(service.model.name.rpartition("/")[2]),
        line(
            decision_sentence(decision, job, account.searched) if chosen and decision else f"{m.configuration}, tried"
        ),
        f"{account.provenance}, {words(language)}",
        service.path or service.model.name,
        language,
        {name: value for name, value in knobs_of(m.configuration) if name not in LOAD_KNOBS},
        most,
        replica(up_to, service.caps, tokens) if tokens else None,
        m.startup_s,
        replicas,
    )


def words(language: LanguageModel) -> str:
    """'of vllm 0.32.0'."""
    engine = language.engine
    return (
        f"of {engine.name or 'the command'} {engine.version}".strip()
        if engine.name or engine.command
        else "of a server"
    )


def _trial(run: str, account: Account, trial: int | None) -> Measurement:
    measurements = account.searched.measurements
    if trial is not None:
        if not 1 <= trial <= len(measurements) or not measurements[trial - 1].ok:
            raise UserError(f"--trial {trial}: run '{run}' has no such trial that ran; see: mlcd show {run}")
        return measurements[trial - 1]
    return chosen_trial(run, account)
