"""`mlcd scale` of a language model with a `plan:`: nodes change; the global batch and the training plan do not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mlcd_fixtures.planned import LLAMA_8B, ONE_BILLION, machines, nodes_of, planned_task
from mlcd_fixtures.scale_promises import account_of, check_elastic_promises, scale

from mlcd.clouds.frameworks import scaling_environment
from mlcd.core.configuration import Space
from mlcd.core.errors import UserError
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger
from mlcd.core.ledger.entries import Started, from_json, to_json
from mlcd.core.measurement import Outcome
from mlcd.core.planner import planner_of
from mlcd.planners.form.jobs import job_from_text
from mlcd.planners.scale.fixed_plan import with_fixed_plan
from mlcd.planners.train.nouns import PlanKnob, plan_of
from mlcd.reports.words import amount_words

JOB = """
name: one-billion
run: torchrun train.py
mlcd:
  model: {layers: 16, hidden: 2048, heads: 32, kv_heads: 8, vocab: 128256, ffn: 8192}
  work: {tokens: 400M}
  sequence: 4096
  global_batch: 256
  plan:
    micro_batch: {env: MICRO, values: [1, 2, 4, 8]}
    sharding: {env: ZERO, values: [none, zero3]}
  checkpoints: true
  budget: $2000
  search: {instances: [g5.12xlarge, p4d.24xlarge]}
  scale: {workers: 4..32}
"""


def scaled(text: str = JOB, **options: str) -> Job:
    return job_from_text("scale", text, options)


def test_a_whole_run_keeps_its_plan_and_its_global_batch() -> None:
    job = scaled()
    assert amount_words(job).startswith("400M tokens in ")
    cloud = planner_of(job).place(job)
    lines, _ = scale(job, cloud)
    check_elastic_promises(job, lines)
    history = account_of(lines).history
    launched = [m.configuration for m in (*history.measurements, *history.runs)]
    assert len({plan_of(c) for c in launched}) == 1
    assert len({c.nodes for c in launched}) > 1
    assert Outcome.OUT_OF_MEMORY not in {m.outcome for m in history.measurements}
    assert history.runs[-1].outcome is Outcome.OK
    for c in launched:
        variables = scaling_environment(job, c)
        batch = int(variables["MLCD_DATA_PARALLEL"]) * int(variables["MICRO"]) * int(variables["MLCD_ACCUMULATION"])
        assert batch == int(variables["MLCD_GLOBAL_BATCH"]) == 256
        assert variables["ZERO"] in ("none", "zero3")
    shown = planner_of(job).additions(account_of(lines))
    assert shown is not None
    assert [table.title for table in shown.tables] == ["Plan variables of the script"]


def test_a_scaled_job_survives_a_round_trip_through_the_ledger() -> None:
    job = scaled()
    cloud = planner_of(job).place(job)
    started = Started(job, cloud.space, "test", cloud.provenance, "test")
    assert from_json(to_json(started)) == started


def space(*gpus: str, nodes: tuple[int, ...] = (1, 2, 4)) -> Space:
    return machines(*(nodes_of(gpu, 8) for gpu in gpus), nodes=nodes)


def test_the_only_allowed_plan_is_kept() -> None:
    task = planned_task(ONE_BILLION, (PlanKnob("micro_batch", (2,), env="MICRO"),))
    task = replace(task, fixed=task.fixed.having(micro_batch=2))
    kept = with_fixed_plan(space("A100-80GB"), task)
    assert {(c.nodes, plan_of(c).micro_batch) for c in kept.configurations} == {(1, 2), (2, 2), (4, 2)}


def test_the_plan_that_fits_most_machines_is_chosen_and_machines_that_it_does_not_fit_are_left_out() -> None:
    knobs = (PlanKnob("micro_batch", (1, 2), env="MICRO"), PlanKnob("sharding", ("none", "zero3"), env="ZERO"))
    kept = with_fixed_plan(space("A100-80GB", "A10G"), planned_task(LLAMA_8B, knobs))
    assert {plan_of(c).sharding for c in kept.configurations} == {"zero3"}
    assert {c.offer.accelerator for c in kept.configurations} == {"A100-80GB"}
    assert {c.nodes for c in kept.configurations} == {1, 2, 4}


def test_if_no_plan_is_likely_to_fit_all_nodes_stay_to_be_probed() -> None:
    knobs = (PlanKnob("micro_batch", (1,), env="MICRO"),)
    kept = with_fixed_plan(space("A10G"), planned_task(LLAMA_8B, knobs))
    assert {c.nodes for c in kept.configurations} == {1, 2, 4}


def test_node_counts_that_cannot_share_the_global_batch_are_left_out() -> None:
    task = replace(planned_task(ONE_BILLION, (PlanKnob("micro_batch", (4, 8), env="MICRO"),)), global_batch=64)
    task = replace(task, fixed=replace(task.fixed, global_batch=64))
    kept = with_fixed_plan(space("A100-80GB", nodes=(1, 2, 3)), task)
    assert {(c.nodes, plan_of(c).micro_batch) for c in kept.configurations} == {(1, 4), (2, 4)}


@pytest.mark.parametrize(
    "text, options, complaint",
    [
        (JOB, {"batch": "128..512"}, "with a `plan:` the global batch stays at 256; leave `--batch` and `batch` out"),
        (JOB, {"on": "recorded:anywhere"}, "a recording knows machines and no plans; leave `plan:` out"),
        (JOB.replace("checkpoints: true", "checkpoints: false"), {}, "the job saves no checkpoints"),
    ],
)
def test_contradictory_settings_are_refused_in_one_line(text: str, options: dict[str, str], complaint: str) -> None:
    job = scaled(text, **options)
    with pytest.raises(UserError, match=complaint) as raised:
        planner_of(job).prepare(job, Ledger(None).database)
    assert "\n" not in str(raised.value)
