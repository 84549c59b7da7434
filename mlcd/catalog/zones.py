"""Zones, and the regions that they are in: a zone's name is its region's with a letter, us-east-1a or us-central1-a."""

import difflib
import re
from collections.abc import Collection, Mapping, Sequence

from mlcd.core.errors import UserError


def regions_of(zones: Sequence[str], regions: Mapping[str, Collection[str]]) -> Mapping[str, tuple[str, ...]]:
    """The zones by their region, in the order in which they are named; one of none of these regions is an error.

    `regions`: with their zones; where none are known, a zone is told by its name.
    """
    found = dict[str, tuple[str, ...]]()
    for zone in dict.fromkeys(zones):
        letter = zone[-1] if zone[-1:].islower() else "a"
        here = {name: region for region, known in regions.items() for name in known or (_zone(region, letter),)}
        if zone not in here:
            near = "".join(
                f"did you mean '{name}'? " for name in difflib.get_close_matches(zone, here, n=1, cutoff=0.75)
            )
            told = f"zones: no prices are known of '{zone}', only of zones in {', '.join(sorted(regions))}"
            raise UserError(f"{told}; {near}More regions: mlcd catalog refresh aws --region REGION --region REGION")
        found[here[zone]] = (*found.get(here[zone], ()), zone)
    return found


def _zone(region: str, letter: str) -> str:
    """As AWS names it, us-east-1a, or as the others do, us-central1-a."""
    return f"{region}{letter}" if re.search(r"-\d+$", region) else f"{region}-{letter}"
