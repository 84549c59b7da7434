"""Find the regions of zones. A zone is named after its region plus a letter: us-east-1a, us-central1-a."""

import difflib
import re
from collections.abc import Collection, Mapping, Sequence

from mlcd.core.errors import UserError


def regions_of(zones: Sequence[str], regions: Mapping[str, Collection[str]]) -> Mapping[str, tuple[str, ...]]:
    """Group zones by region, in the given order; a zone in none of these regions is an error.

    `regions`: each with its known zones; if it has none, a zone is recognised by its name.
    """
    by_region = dict[str, tuple[str, ...]]()
    for zone in dict.fromkeys(zones):
        letter = zone[-1] if zone[-1:].islower() else "a"
        known = {name: region for region, names in regions.items() for name in names or (_zone(region, letter),)}
        if zone not in known:
            near = "".join(
                f"did you mean '{name}'? " for name in difflib.get_close_matches(zone, known, n=1, cutoff=0.75)
            )
            unknown = f"zones: no prices are known for '{zone}', only for zones in {', '.join(sorted(regions))}"
            raise UserError(f"{unknown}; {near}More regions: mlcd catalog refresh aws --region REGION --region REGION")
        by_region[known[zone]] = (*by_region.get(known[zone], ()), zone)
    return by_region


def _zone(region: str, letter: str) -> str:
    """A zone's name: as of AWS, us-east-1a, or of other clouds, us-central1-a."""
    return f"{region}{letter}" if re.search(r"-\d+$", region) else f"{region}-{letter}"
