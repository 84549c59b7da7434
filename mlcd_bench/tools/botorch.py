"""BoTorch: log expected improvement per cost of the probe.

Balandat et al., 'BoTorch', NeurIPS 2020; Ament et al., 'Unexpected Improvements to Expected Improvement', NeurIPS 2023
(log EI). How we interpret it: docs/methods/baselines.md.

`SingleTaskGP` with its defaults, over the same features as our own processes, of -log J. The acquisition is computed
for each open configuration, so no suggestion has to be moved. A failure is reported as the worst that ran.

Symbols   q(D)    the most that a probe of D costs, in the unit of J
          log EI(D) - log q(D)   the acquisition
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import botorch
import numpy as np
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood

from mlcd.core.configuration import Floats, Space
from mlcd.core.history import History
from mlcd.core.job import Job, Objective
from mlcd.core.strategy import Step
from mlcd_bench.baselines.train.candidates import Mask, generator
from mlcd_bench.baselines.train.gaussian_process import features
from mlcd_bench.tools.trials import FIRST, TRIALS, Trial, draw, next_trial


@dataclass(frozen=True)
class BoTorch:
    """Random first points, then the largest log EI per cost."""

    seed: int = 0
    trials: int = TRIALS

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The open configuration with the largest log EI per cost."""
        cost = space.probe_s if job.goal.objective is Objective.FASTEST else space.probe_usd

        def pick(open_: Mask, trials: list[Trial]) -> int:
            if len(trials) < FIRST:
                return int(generator(self.seed, history).choice(np.flatnonzero(open_)))
            per_cost = log_ei(features(space), trials) - np.log(cost)
            return int(np.argmax(np.where(open_, per_cost, -np.inf)))

        with botorch.manual_seed(draw(self.seed, history)), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of few points, and of fits that it repeats
            return next_trial(job, space, history, "botorch", self.trials, pick)


def log_ei(x: Floats, trials: list[Trial]) -> Floats:
    """Log EI of every row, from the trials."""
    at = torch.from_numpy(x)
    shown = torch.tensor([[-trial.log_j] for trial in trials], dtype=torch.float64)
    process = SingleTaskGP(at[[trial.place for trial in trials]], shown)
    botorch.fit_gpytorch_mll(ExactMarginalLogLikelihood(process.likelihood, process))
    with torch.no_grad():
        acquisition: Floats = LogExpectedImprovement(process, best_f=shown.max())(at.unsqueeze(1)).numpy()
    return acquisition
