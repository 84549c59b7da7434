"""The promises about every elastic run, in random worlds: step times, memory limits, noise, bad luck."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.examples import THOROUGH
from mlcd_fixtures.scale_clouds import Kind, World
from mlcd_fixtures.scale_promises import account_of, check_elastic_promises, scale

from mlcd.core.job import Goal, Objective
from mlcd.planners.modeling.iteration_time import fit_iteration_time
from mlcd.planners.modeling.performance import NodePrice, PerformanceModel, from_noise
from mlcd.planners.scale.nouns import Mode, batch_of

kinds = st.builds(
    Kind,
    usd_per_hour=st.floats(0.05, 20.0),
    c0_s=st.floats(1e-3, 0.1),
    c1_s=st.floats(1e-5, 1e-2),
    s0_s=st.floats(1e-3, 0.3),
    s1_s=st.floats(0.0, 0.05),
    most_local=st.one_of(st.just(np.inf), st.sampled_from([8.0, 16.0, 32.0, 64.0, 128.0])),
)
subsets = st.sets(st.sampled_from((32, 64, 128, 256)), min_size=1, max_size=4)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Minutes to days; targets that are reached at once, late, or never."""
    world = World(
        tuple(draw(st.lists(kinds, min_size=1, max_size=2))),
        tuple(sorted(draw(st.sets(st.sampled_from((1, 2, 4)), min_size=1)))),
        tuple(sorted(draw(subsets))),
        epochs=draw(st.floats(1.0, 60.0)),
        noise_scale=draw(st.floats(10.0, 1e4)),
        probe_s=draw(st.floats(60.0, 600.0)),
        error=draw(st.sampled_from([0.0, 0.01, 0.03])),
        seed=draw(st.integers(0, 99)),
    )
    fastest = max(world.rate(c) for c in world.space.configurations)
    lengths = draw(st.floats(1.0, 500.0))
    return replace(world, dataset=fastest * world.probe_s * lengths / world.most_epochs)


@st.composite
def goals(draw: st.DrawFn, world: World) -> Goal:
    """From hopeless to generous, in one limit, in both, or in none."""
    whole = world.dataset * world.most_epochs
    takes = {c: whole / world.rate(c) for c in world.space.configurations}
    factor = st.one_of(st.none(), st.floats(0.3, 10.0))
    budget, deadline = draw(factor), draw(factor)
    return Goal(
        draw(st.sampled_from(list(Objective))),
        None if budget is None else budget * min(c.usd(seconds) for c, seconds in takes.items()),
        None if deadline is None else deadline * min(takes.values()),
    )


def taught(world: World, epochs: float | None) -> dict[str, Any]:
    """What an earlier run of the job would have left behind, from the first type's steps."""
    seen = [c for c in world.space.configurations if c.offer.instance_type == "type-0"]
    batches = np.array([float(batch_of(c) or 1) for c in seen])
    nodes = np.array([float(c.nodes) for c in seen])
    seconds = batches / np.array([world.rate(c) for c in seen])
    steps = fit_iteration_time(nodes, batches / nodes, seconds)
    shape = from_noise(64.0, epochs, world.noise_scale or 1.0)
    model = PerformanceModel(steps, shape, world.dataset, 1, NodePrice(1.0))
    found: dict[str, Any] = json.loads(json.dumps(model.document()))  # as it comes from its file
    return found


@THOROUGH
@given(st.data(), worlds(), st.sampled_from([Mode.FULL, Mode.PARTIAL]))
def test_every_promise_holds_in_any_world(data: st.DataObject, world: World, mode: Mode) -> None:
    job = world.job(data.draw(goals(world)), mode)
    lines, _ = scale(job, world.cloud())
    check_elastic_promises(job, lines)


@THOROUGH
@given(st.data(), worlds(), st.sampled_from(list(Mode)), st.booleans())
def test_every_promise_holds_with_what_earlier_runs_have_taught(
    data: st.DataObject, world: World, mode: Mode, knows_epochs: bool
) -> None:
    """True of the first type at the most, and of a job that may have changed since: no promise may rest on it."""
    job = world.job(data.draw(goals(world)), mode)
    lesson = taught(world, data.draw(st.floats(0.1, 10.0)) * world.epochs if knows_epochs else None)
    lines, _ = scale(job, world.cloud(), lesson)
    check_elastic_promises(job, lines)


@THOROUGH
@given(st.data(), worlds(), st.sampled_from([Mode.FULL, Mode.PARTIAL]), st.floats(0.05, 0.6))
def test_bad_luck_never_breaks_a_limit_nor_the_books(
    data: st.DataObject, world: World, mode: Mode, chance: float
) -> None:
    world = replace(world, bad_luck=chance)
    job = world.job(data.draw(goals(world)), mode)
    lines, _ = scale(job, world.cloud())
    check_elastic_promises(job, lines, steady=False)


@THOROUGH
@given(st.data(), worlds(), st.sampled_from([Mode.FULL, Mode.PARTIAL]))
def test_a_job_without_a_target_does_all_of_its_work_and_none_twice(
    data: st.DataObject, world: World, mode: Mode
) -> None:
    world = replace(world, batches=(64,))
    job = replace(world.job(data.draw(goals(world)), mode), target=None)
    lines, decision = scale(job, world.cloud())
    check_elastic_promises(job, lines)
    if decision.certified:
        saved = account_of(lines).history.saved_samples
        assert saved >= job.work_samples * (1 - 1e-9)
