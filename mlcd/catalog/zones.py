"""Zones, and the regions that they are in: a zone's name is its region's with a letter, us-east-1a or us-central1-a."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

from mlcd.core.errors import UserError


def regions_of(zones: Sequence[str], regions: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """The zones by their region, in the order in which they are named; one of none of these regions is an error."""
    known, found = sorted(set(regions)), dict[str, tuple[str, ...]]()
    for zone in dict.fromkeys(zones):
        letter = zone[-1] if zone[-1:].islower() else "a"
        here = {_zone(region, letter): region for region in known}
        if zone not in here:
            near = "".join(
                f"did you mean '{name}'? " for name in difflib.get_close_matches(zone, here, n=1, cutoff=0.75)
            )
            told = f"zones: '{zone}' is in no region with known prices ({', '.join(known)})"
            raise UserError(f"{told}; {near}More regions: mlcd catalog refresh aws --region REGION --region REGION")
        found[here[zone]] = (*found.get(here[zone], ()), zone)
    return found


def _zone(region: str, letter: str) -> str:
    """As AWS names it, us-east-1a, or as the others do, us-central1-a."""
    return f"{region}{letter}" if re.search(r"-\d+$", region) else f"{region}-{letter}"
