"""A folder that `--on market:DIR` replays. Its file `market.yaml` says which trace is the market of which machines.

recording: ../bert      a training recording: the speed and on-demand price of each configuration
traces: ../spot         recorded markets (`market_traces.py`); both of them default to this folder
changeover: 6m          how long a launch takes to start and to restore the checkpoint
history: 7d             how much of the trace before its start the run knows; by default nothing
markets:                the first rule that fits a type and number of nodes counts; without one only on demand is rented
  - {types: 'p3.*', nodes: 1..3, trace: v100x1}
  - {types: 'p3.*', trace: v100x16, need: all, zones: [us-east-2b], from: 48h}

`need`: whether a zone is available if any of the requested machines was, or only if all of them were. `from`: earlier
parts of the trace are left out, so that traces of different days can be combined. Prices are those of the trace,
scaled so that its cheapest on-demand zone costs what the recording says.
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
    """A recording of speeds, and the recorded market of each configuration that has one."""

    recording: Recording
    markets: Mapping[Configuration, TracedMarket]
    changeover_s: float
    history_s: float = 0.0
    made_up: bool = False
    """Whether the speeds come from the simulated cloud."""


def load_market_folder(folder: Path) -> MarketFolder:
    """Read the folder; a mistake in it becomes a `UserError` of one line."""
    path = folder / FILE
    file = _read(path)
    recording, (traced, _) = load_recording(folder / file.recording), read_markets(folder / file.traces)
    of_rules = [_market_of(path, rule, traced) for rule in file.markets]
    markets = {}
    for configuration in recording.points:
        fitting = (of for rule, of in zip(file.markets, of_rules, strict=True) if rule.fits(configuration))
        if (market := next(fitting, None)) is not None:
            markets[configuration] = market
    if not markets:
        raise UserError(f"{path}: markets: no rule fits a type and number of nodes of the recording")
    if file.changeover >= recording.probe_time.base_s / 2:
        half_m = recording.probe_time.base_s / 120
        raise UserError(f"{path}: changeover: must be less than half of a probe of the recording, {half_m:g}m")
    return MarketFolder(recording, markets, file.changeover, file.history)


def _read(path: Path) -> _File:
    try:
        return _File.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; the folder of a market needs this file") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{path}: not YAML: {str(error).splitlines()[0]}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise UserError(f"{path}: {where}: {first['msg'].removeprefix('Value error, ')}") from None


def _market_of(path: Path, rule: _Rule, traced: list[TracedMarket]) -> TracedMarket:
    """The recorded market of a rule."""
    same = [each for each in traced if each.set == rule.trace]
    if not same:
        raise UserError(
            f"{path}: trace '{rule.trace}': no such trace; there is {', '.join(sorted({each.set for each in traced}))}"
        )
    market = next(
        (each for each in same if each.need == rule.need), same[0]
    )  # with one requested machine there is only `any`
    unknown = [zone for zone in rule.zones if zone not in market.zones]
    if unknown:
        raise UserError(f"{path}: zone '{unknown[0]}': {rule.trace} has {', '.join(market.zones)}")
    return (market.only(rule.zones) if rule.zones else market).since(rule.from_ / 3_600)
