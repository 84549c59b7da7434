"""The delayed restart: when the functions of another allocation are called, so that nobody waits for them.

Wu et al. (CE-scaling, IPDPS 2023), section III-D and figure 8, which says that the time is easy to compute and not how.
The running epoch ends when its functions have sent their last gradients, E seconds after it was called; the new ones
then pull the model. Before that they have to be up, and have their part of the data, which needs no model:

    E = start + load + compute + sync     of the running epoch
    A = start' + load'                    of the new functions, until they can go on
    launch after x:  they wait max(0, x + A - E) seconds too little, and are billed max(0, E - A - x) seconds too much

Both are zero at x = E - A, and only there. Where A > E, nothing is early enough, and x = 0 is the best: the run waits
for A - E seconds. A function waits cheaper than a run does, but not for free: earlier than x gains nothing.
"""

from __future__ import annotations

from mlcd.modeling.serverless.epoch import Parts


def launch_after_s(running: Parts, starting: Parts) -> float:
    """Seconds from the call of the running epoch to the call of the new functions."""
    return max(0.0, running.seconds - (starting.start_s + starting.load_s))


def waited_s(running: Parts, starting: Parts) -> float:
    """How long the run still waits for the new functions, if they are called then."""
    return max(0.0, launch_after_s(running, starting) + starting.start_s + starting.load_s - running.seconds)
