"""The knobs of a space, column by column."""

from __future__ import annotations

from collections.abc import Sequence

from mlcd.core.configuration import Space
from mlcd.planners.serve.knobs import Knob


def columns(space: Space, names: Sequence[str]) -> dict[str, tuple[Knob, ...]]:
    """For each knob, how it is set in every configuration of a space, in the space's order."""
    told = [dict(configuration.knobs) for configuration in space.configurations]
    return {name: tuple(knobs[name] for knobs in told) for name in names}
