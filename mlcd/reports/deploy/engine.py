"""The deployment of a language model: engine, version and flags of a trial, and its admission limit.

More concurrency than measured would break the caps, so the engine admits no more; other requests wait in its queue.
`mlcd replicas` plans the number of replicas; autoscaling targets get the rate that one replica can take.
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
    """The planned number of replicas: `at_least` always, `at_most` at peak."""

    at_least: int = 1
    at_most: int = 1


ONE_REPLICA = Replicas()


@dataclass(frozen=True)
class EngineDeployment:
    """A deployment that a run has tried. `model`: a name or a folder. `admitted`: its concurrency limit, if known.

    `takes`: the capacity of one replica; None if no level meets the caps, or request lengths are unknown.
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
        """The engine's name; empty if only its command is known."""
        return self.language.engine.name

    @property
    def version(self) -> str:
        """The engine's version without a local suffix ('0.32.0+cpu' is 0.32.0)."""
        return self.language.engine.version.partition("+")[0].removeprefix("v")

    @property
    def is_folder(self) -> bool:
        """Whether the model is a local folder or file, not a name that the engine downloads."""
        return self.model.startswith(("/", "./", "../", "~"))

    @property
    def gpus(self) -> int:
        """GPUs of one engine; 0 on a CPU."""
        if any(name in self.knobs for name in ON_CPU) or not any(name in self.knobs for name in ON_GPU):
            return 0
        ranks = prod(int(self.knobs.get(name, 1)) for name in ("tp", "pp", "dp"))
        return ranks if self.split else max(ranks, int(self.knobs.get("gpus", 1)))

    @property
    def split(self) -> bool:
        """Whether prefill and decode run on separate engines."""
        return self.knobs.get("mode") == SPLIT

    def command(self, model: str | None = None, port: int = PORT) -> CommandLine:
        """The command that starts it. `model`: the model's path on the target, if it differs."""
        engine = self.language.engine
        name = self.name if self.is_folder or model is not None else ""
        return command_line(
            engine.name, model or self.model, self.with_admission(), start=engine.command, name=name, port=port
        )

    def with_admission(self) -> dict[str, Knob]:
        """The knobs, including the admission limit."""
        return admitting(self.engine, self.knobs, self.admitted)

    def placed(self, made: CommandLine, fields: Mapping[str, str]) -> tuple[PlacedKnob, ...]:
        """The place of each knob: in the command line, or in a field of the target."""
        placed = []
        for name, value in self.knobs.items():
            where = fields.get(name) or made.where.get(name, "")
            note = "" if where else made.notes.get(name, NOT_IN_COMMAND.get(name, "set it yourself"))
            if name == "sequences" and self.with_admission()[name] != value:
                note = f"limited to the {self.admitted} concurrent requests that were measured"
            placed.append(PlacedKnob(name, value, where, note))
        return tuple(placed)


def engine_deployment(
    run: str,
    account: Account,
    trial: int | None = None,
    concurrency: int | None = None,
    replicas: Replicas = ONE_REPLICA,
) -> EngineDeployment:
    """The decided deployment of a run, or that of its `trial`-th trial. `concurrency`: of another than the best level.

    WrongState if there is nothing to deploy; UserError if there is no such trial or level.
    """
    job, service = account.job, service_of(account.job)
    if (language := service.language) is None:
        raise WrongState(f"run '{run}' serves an ONNX model: export it with --to kserve, triton or compose")
    m = _trial(run, account, trial)
    if language.engine.name not in WITH_FLAGS and not language.engine.command:
        if job.on.startswith("recorded"):
            raise WrongState(f"run '{run}' replayed a recording, which has no engine to start; see: mlcd show {run}")
        raise WrongState(
            f"run '{run}' measured an engine that was already running: MLCD does not know how it was started"
        )
    levels = levels_of(m)
    if concurrency is not None and concurrency not in (tried := [level.concurrency for level in levels]):
        raise UserError(f"--concurrency {concurrency}: it was not measured; choose from {', '.join(map(str, tried))}")
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
