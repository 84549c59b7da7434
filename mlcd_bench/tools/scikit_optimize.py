"""scikit-optimize: `gp_minimize`, by its ask-and-tell interface.

Head et al., 'scikit-optimize', 2018. How we interpret it: docs/methods/baselines.md.

The type is a categorical dimension, the nodes a log-integer one. All else is the tool's default: a Gaussian process,
one of EI, LCB and PI at random ('gp_hedge'), a random point if that was tried before. A suggestion is moved to the
nearest open configuration. A failure is reported as the worst that ran.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import skopt

from mlcd.core.configuration import Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Step
from mlcd_bench.baselines.train.candidates import Mask
from mlcd_bench.tools.trials import FIRST, TRIALS, Trial, bounds, draw, nearest, next_trial


@dataclass(frozen=True)
class ScikitOptimize:
    """scikit-optimize with its defaults."""

    seed: int = 0
    trials: int = TRIALS

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """What the optimizer asks for next."""

        def pick(open_: Mask, trials: list[Trial]) -> int:
            return nearest(space, open_, *_asked(space, trials, draw(self.seed, history)))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of repeated points, and of bounds that its own fit reaches
            return next_trial(job, space, history, "scikit-optimize", self.trials, pick)


def _asked(space: Space, trials: list[Trial], seed: int) -> tuple[int, int]:
    types = skopt.space.Categorical(list(range(len(space.offers))))
    nodes = skopt.space.Integer(*bounds(space), prior="log-uniform")
    optimizer = skopt.Optimizer([types, nodes], n_initial_points=FIRST, random_state=seed)
    if trials:
        tried = [[int(space.offer_index[trial.place]), int(space.nodes[trial.place])] for trial in trials]
        optimizer.tell(tried, [trial.log_j for trial in trials])
    offer, wanted = optimizer.ask()
    return int(offer), int(wanted)
