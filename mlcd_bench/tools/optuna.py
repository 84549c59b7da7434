"""Optuna: its TPE sampler, the default, and its Gaussian process.

Akiba et al., 'Optuna: A Next-generation Hyperparameter Optimization Framework', KDD 2019.
How we interpret it: docs/methods/baselines.md.

The type is a categorical parameter, the nodes a log-integer from the smallest to the largest of all types. A
suggestion is moved to the nearest open configuration. A failure is reported as the worst that ran.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import BaseSampler, GPSampler, TPESampler

from mlcd.core.configuration import Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Step
from mlcd_bench.baselines.train.candidates import Mask
from mlcd_bench.tools.trials import FIRST, TRIALS, Trial, bounds, draw, nearest, next_trial

optuna.logging.set_verbosity(optuna.logging.WARNING)  # it logs every study, and a comparison makes thousands


@dataclass(frozen=True)
class OptunaTPE:
    """Optuna with its default sampler, a tree-structured Parzen estimator."""

    seed: int = 0
    trials: int = TRIALS

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """What the study suggests next."""
        return _next_step(job, space, history, "optuna-tpe", self.seed, self.trials, TPESampler)


@dataclass(frozen=True)
class OptunaGP:
    """Optuna with its Gaussian process, Matern 5/2 and log EI. Needs torch."""

    seed: int = 0
    trials: int = TRIALS

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """What the study suggests next."""
        return _next_step(job, space, history, "optuna-gp", self.seed, self.trials, GPSampler)


def _next_step(
    job: Job, space: Space, history: History, name: str, seed: int, asked: int, sampler: Callable[..., BaseSampler]
) -> Step:
    def pick(open_: Mask, trials: list[Trial]) -> int:
        offer, nodes = _suggestion(space, trials, sampler(seed=draw(seed, history), n_startup_trials=FIRST))
        return nearest(space, open_, offer, nodes)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of experimental features, and of bounds that its own fit reaches
        return next_trial(job, space, history, name, asked, pick)


def _suggestion(space: Space, trials: list[Trial], sampler: BaseSampler) -> tuple[int, int]:
    low, high = bounds(space)
    asked: dict[str, BaseDistribution] = {
        "type": CategoricalDistribution(range(len(space.offers))),
        "nodes": IntDistribution(low, high, log=True),
    }
    study = optuna.create_study(sampler=sampler)
    for trial in trials:
        tried = {"type": int(space.offer_index[trial.place]), "nodes": int(space.nodes[trial.place])}
        study.add_trial(optuna.trial.create_trial(params=tried, distributions=asked, value=trial.log_j))
    params = study.ask(asked).params
    return int(params["type"]), int(params["nodes"])
