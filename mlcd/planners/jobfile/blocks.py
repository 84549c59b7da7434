"""The `mlcd:` block of a job file: its keys, their units and defaults."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, create_model, model_validator

from mlcd.core import units
from mlcd.core.job import CONFIDENCE, Communication, Fingerprint, Goal, Hints, Job, Objective, Search, Target
from mlcd.core.pattern import compile_pattern
from mlcd.core.planner import DEFAULT_PLANNER, planner_named, planner_names
from mlcd.planners.jobfile.keys import (
    Count,
    Gigabytes,
    Keys,
    Names,
    PlannerBlock,
    Seconds,
    Size,
    Usd,
    Whole,
    Work,
    mistake_at,
    one_of,
    such_as,
    whole,
)

DEFAULT = Search()
PLATFORMS = ("skypilot", "functions")
"""Places in whose name a platform follows, not a path."""


def _usd_or_unlimited(written: Any) -> float | None:
    """Dollars; 'none' becomes infinity, since None means that the key is missing."""
    return math.inf if written == "none" else None if written is None else units.parse_usd(written)


def _report(written: Any) -> str:
    try:
        groups = compile_pattern(str(written)).groupindex
    except ValueError as error:
        raise ValueError(f"'{written}': it cannot be matched: {error}") from None
    if not {"step", "samples", "epoch"} & set(groups):
        groups_expected = "'step (?P<step>\\d+)' or '(?P<samples>\\d+) samples'"
        raise ValueError(f"'{written}': expected a pattern with a group, such as {groups_expected}")
    return str(written)


def _zones(written: Any) -> tuple[str, ...]:
    names = [written] if isinstance(written, str) else written
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"'{written}': expected zones, such as [us-east-1a, us-east-1b]")
    return tuple(names)


class SearchBlock(Keys):
    """How to search, and where."""

    method: str = DEFAULT.method
    """How the next probe is chosen."""
    nodes: Annotated[tuple[int, int], BeforeValidator(units.parse_range), such_as("1..16")] = DEFAULT.nodes
    """How many nodes a configuration may have, such as 1..16."""
    instances: Annotated[tuple[str, ...], BeforeValidator(units.parse_patterns), Names] = DEFAULT.instances
    """Instance types: a pattern such as g5.*, or a list of them."""
    seed: Annotated[int, BeforeValidator(partial(units.parse_whole, least=0))] = DEFAULT.seed
    """The seed of everything random; 0 or more."""
    parallel: Annotated[int, BeforeValidator(whole)] = DEFAULT.parallel
    """How many probes may run at once."""
    early_look: Annotated[float, BeforeValidator(units.parse_share)] = DEFAULT.early_look or 1.0
    """The share of a probe after which a method may end it early; none for whole probes."""
    earlier: Annotated[bool, BeforeValidator(units.parse_flag)] = DEFAULT.earlier
    """Whether measurements of earlier runs of the same job guide the search."""
    max_probe: Annotated[float | None, BeforeValidator(_usd_or_unlimited)] = DEFAULT.max_probe_usd
    """The most dollars that one probe may cost, or none."""
    max_hourly: Usd = DEFAULT.max_hourly_usd
    """The most dollars an hour for all machines that are up at once, or none."""
    zones: Annotated[tuple[str, ...], BeforeValidator(_zones), Names] = DEFAULT.zones
    """With `use_spot: any`: where machines may be rented, such as [us-east-1a, us-east-1b]."""

    @property
    def settings(self) -> Search:
        """The block as a `Search`; a look at the end of a probe is not early."""
        same_names = self.model_dump(exclude={"early_look", "max_probe", "max_hourly"})
        look = self.early_look if self.early_look < 1 else None
        return Search(**same_names, early_look=look, max_probe_usd=self.max_probe, max_hourly_usd=self.max_hourly)


class FingerprintBlock(Keys):
    """What identifies jobs that train alike."""

    architecture: str = ""
    """The model, in your own words."""
    data: str = ""
    """The data that it is trained on."""
    optimizer: str = ""
    """The optimiser."""

    @property
    def settings(self) -> Fingerprint:
        """The block as a `Fingerprint`."""
        return Fingerprint(**self.model_dump())


class Block(Keys):
    """The `mlcd:` block."""

    work: Work
    """How much there is to do: samples in total, such as 90M, or the keys below it."""
    goal: Annotated[Objective, one_of(Objective)] = Objective.FASTEST
    """What to minimise: the time, the cost, or a balance of both (knee)."""
    budget: Usd = None
    """Dollars for probes and the final run together, such as $100. Without it there is no limit."""
    deadline: Seconds = None
    """Time for probes and the final run together, such as 6h or 1d 4h. Without it there is no limit."""
    confidence: Annotated[float, BeforeValidator(units.parse_confidence)] = CONFIDENCE
    """The probability that a certified job ends within its limits: 0.9, 99 %; at least 0.5, below 1."""
    communication: Annotated[Communication, one_of(Communication)] = Communication.ALL_REDUCE
    """How workers exchange gradients."""
    parameters: Count = None
    """Size of the model, such as 25.6M; a hint."""
    flops_per_sample: Count = None
    """Forward and backward, for one sample, such as 12.3G; a hint."""
    batch: Whole = None
    """The global batch, in samples; a hint."""
    sequence: Size = None
    """Tokens of one sample, for `work: {tokens: ...}` and `plan`."""
    memory: Gigabytes = None
    """A node with less memory, such as 16GB, is left out; a hint."""
    egress: Annotated[float, BeforeValidator(units.parse_traffic)] = Job.egress_gb
    """The most data that one launch sends out of its region, such as 20GB."""
    checkpoints: Annotated[bool, BeforeValidator(units.parse_flag)] = False
    """The job saves its work and continues from it, so the work of a probe counts."""
    checkpoint_size: Annotated[float | None, BeforeValidator(units.parse_traffic)] = None
    """The size of a checkpoint, such as 50GB, to count the price of moving it between regions."""
    report: Annotated[str, BeforeValidator(_report)] = ""
    """A pattern that reads progress from the job's output, with a group `samples`, `step` or `epoch`."""
    search: SearchBlock = SearchBlock()
    """How to search, and where."""
    fingerprint: FingerprintBlock = FingerprintBlock()
    """What identifies jobs that train alike, in your own words."""
    on: str = Job.on
    """Where to search and run; a relative path is relative to the job file's folder."""

    @model_validator(mode="after")
    def _blocks_go_with_the_rest(self) -> Block:
        for block in self.planner_blocks.values():
            block.check(self.work)
        return self

    @model_validator(mode="after")
    def _a_sequence_has_a_length(self) -> Block:
        if self.work.tokens is not None and self.sequence is None:
            raise mistake_at(("work", "tokens"), "work: how many tokens has a sample? Add `sequence: 4096`")
        return self

    @model_validator(mode="after")
    def _a_size_is_that_of_checkpoints(self) -> Block:
        if self.checkpoint_size and not self.checkpoints:
            saves_none = "checkpoint_size: the job saves no checkpoints; add `checkpoints: true` once it does"
            raise mistake_at(("checkpoint_size",), saves_none)
        return self

    @model_validator(mode="after")
    def _an_epoch_has_a_length(self) -> Block:
        groups = set(compile_pattern(self.report).groupindex)
        if "epoch" not in groups or {"step", "steps"} <= groups:
            return self
        if self.work.dataset is None:
            raise mistake_at(
                ("report",),
                "report: an `epoch` group needs the length of an epoch: `work: {dataset: 50k, epochs: 20}`, "
                "or a `steps` group, as in 'step (?P<step>\\d+)/(?P<steps>\\d+)'",
            )
        if "step" in groups and "samples" not in groups and self.batch is None:
            needs_batch = "report: steps within an epoch need the batch size to count samples; add `batch: 128`"
            raise mistake_at(("report",), needs_batch)
        return self

    @property
    def planner_blocks(self) -> dict[str, PlannerBlock]:
        """The planners' blocks in the file, by the planner's name."""
        blocks = {name: getattr(self, name) for name in type(self).model_fields}
        return {planner_of_key(name): block for name, block in blocks.items() if isinstance(block, PlannerBlock)}

    @property
    def target(self) -> Target | None:
        """The metric that ends the job, from whichever block has it."""
        return next((block.target for block in self.planner_blocks.values() if block.target is not None), None)

    def job(self, name: str, task: Mapping[str, Any], folder: Path) -> Job:
        """The block as a `Job`. A relative path in `on` is relative to the job file's folder."""
        on = self.on
        kind, _, path = on.partition(":")
        if path and kind not in PLATFORMS:
            on = f"{kind}:{folder / path}"
        blocks = {planner: block.ask(self.work) for planner, block in self.planner_blocks.items()}
        return Job(
            name=name,
            work_samples=self.work.total(self.sequence),
            goal=Goal(self.goal, self.budget, self.deadline, "goal" in self.model_fields_set, self.confidence),
            communication=self.communication,
            hints=Hints(self.parameters, self.flops_per_sample, int(self.batch) if self.batch else None, self.memory),
            search=self.search.settings,
            checkpoints=self.checkpoints,
            report=self.report,
            folder=str(folder.resolve()),
            on=on,
            task=task,
            dataset_samples=self.work.dataset,
            target=self.target,
            fingerprint=self.fingerprint.settings,
            ask=next(iter(blocks.values()), None),
            blocks=blocks,
            egress_gb=self.egress,
            checkpoint_gb=self.checkpoint_size,
        )


def block_for(keys: Iterable[str]) -> type[Block]:
    """The model of the `mlcd:` block for a file with these keys: with the blocks of the planners among them.

    The usual planner has no block: its keys are in the `mlcd:` block itself.
    """
    base: type[Block] = planner_named(DEFAULT_PLANNER).keys or Block
    others = [key for key in keys if key not in base.model_fields and planner_of_key(key) in planner_names()]
    models = {key: planner_named(planner_of_key(key)).block for key in sorted(others)}
    fields: dict[str, Any] = {key: (model | None, None) for key, model in models.items() if model is not None}
    return create_model("Block", __base__=base, **fields) if fields else base


def planner_of_key(key: str) -> str:
    """The planner whose block has this key."""
    return FORMER_NAMES.get(key, key)


FORMER_NAMES = {"elastic": "scale"}
"""Old keys of planners' blocks."""
