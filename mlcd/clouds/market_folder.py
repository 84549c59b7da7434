"""A folder that `--on market:DIR` replays: which trace is the spot market of which machines, in a file `market.yaml`.

recording: ../bert      a training recording: how fast each configuration is, and its price on demand
traces: ../spot         recorded markets (`market_traces.py`); both of them are this folder where they are not named
changeover: 6m          how long the machines of a launch take to come, and the checkpoint to be restored
history: 7d             how much of the trace before the start is known to the run; by default nothing
markets:                the first that fits a type and a number of nodes is theirs; others are rented on demand alone
  - {types: 'p3.*', nodes: 1..3, trace: v100x1}
  - {types: 'p3.*', trace: v100x16, need: all, zones: [us-east-2b], from: 48h}

`need`: whether one machine of those that were asked for (any) or all of them make a zone available. `from`: what is
before that time of the trace is left out, so that traces of other days can be laid side by side. Prices are those of
the trace, to scale: the cheapest zone on demand there costs what the recording says.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from mlcd.clouds.market_traces import TracedMarket, read_markets
from mlcd.clouds.recording import Recording, load_recording
from mlcd.core.configuration import Configuration
from mlcd.core.errors import UserError
from mlcd.core.units import MOST_NODES, parse_duration, parse_range

FILE = "market.yaml"
Duration = Annotated[float, BeforeValidator(parse_duration)]


class _Rule(BaseModel):
    model_config = ConfigDict(extra="forbid")

    types: str = "*"
    nodes: Annotated[tuple[int, int], BeforeValidator(parse_range)] = (1, MOST_NODES)
    trace: str
    need: Literal["any", "all"] = "any"
    zones: tuple[str, ...] = ()
    from_: Duration = Field(0.0, alias="from")

    def fits(self, configuration: Configuration) -> bool:
        named = fnmatchcase(configuration.offer.instance_type.lower(), self.types.lower())
        return named and self.nodes[0] <= configuration.nodes <= self.nodes[1]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    markets: Annotated[tuple[_Rule, ...], Field(min_length=1)]
    recording: str = "."
    traces: str = "."
    changeover: Duration = 360.0
    history: Duration = 0.0


@dataclass(frozen=True)
class MarketFolder:
    """Speeds, and the recorded market of each configuration that has one."""

    recording: Recording
    markets: Mapping[Configuration, TracedMarket]
    changeover_s: float
    history_s: float = 0.0
    made_up: bool = False
    """Whether the speeds are those of the simulated cloud."""


def load_market_folder(folder: Path) -> MarketFolder:
    """Read it; a mistake in it becomes a `UserError` of one line."""
    path = folder / FILE
    file = _read(path)
    recording, (traced, _) = load_recording(folder / file.recording), read_markets(folder / file.traces)
    of_rules = [_traced(path, rule, traced) for rule in file.markets]
    markets = {}
    for configuration in recording.points:
        fitting = (of for rule, of in zip(file.markets, of_rules, strict=True) if rule.fits(configuration))
        if (market := next(fitting, None)) is not None:
            markets[configuration] = market
    if not markets:
        raise UserError(f"{path}: markets: no rule fits any type and number of nodes of the recording")
    if file.changeover >= recording.probe_time.base_s / 2:
        half_m = recording.probe_time.base_s / 120
        raise UserError(f"{path}: changeover: must be less than half of a probe of the recording, {half_m:g}m")
    return MarketFolder(recording, markets, file.changeover, file.history)


def _read(path: Path) -> _File:
    try:
        return _File.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; a market is a folder with this file") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{path}: not YAML: {str(error).splitlines()[0]}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise UserError(f"{path}: {where}: {first['msg'].removeprefix('Value error, ')}") from None


def _traced(path: Path, rule: _Rule, traced: list[TracedMarket]) -> TracedMarket:
    """The recorded market that a rule names."""
    same = [each for each in traced if each.set == rule.trace]
    if not same:
        raise UserError(f"{path}: trace '{rule.trace}': there is {', '.join(sorted({each.set for each in traced}))}")
    market = next((each for each in same if each.need == rule.need), same[0])  # one machine alone: any is all
    unknown = [zone for zone in rule.zones if zone not in market.zones]
    if unknown:
        raise UserError(f"{path}: zone '{unknown[0]}': {rule.trace} has {', '.join(market.zones)}")
    return (market.only(rule.zones) if rule.zones else market).since(rule.from_ / 3_600)
