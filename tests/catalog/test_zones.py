"""Zones are recognised by their names."""

from __future__ import annotations

import pytest

from mlcd.catalog import regions_of
from mlcd.core.errors import UserError

REGIONS: dict[str, tuple[str, ...]] = {
    "us-east-1": (),
    "us-west-2": ("us-west-2a", "us-west-2b"),
    "europe-west1": (),
    "europe-west10": (),
    "us-central1": (),
}
"""With zones where they are known."""


def test_zones_are_found_in_their_region_and_keep_their_order() -> None:
    zones = ("us-west-2b", "us-east-1a", "us-west-2a", "europe-west10-a", "europe-west1-c", "us-west-2b")
    assert regions_of(zones, REGIONS) == {
        "us-west-2": ("us-west-2b", "us-west-2a"),
        "us-east-1": ("us-east-1a",),
        "europe-west10": ("europe-west10-a",),
        "europe-west1": ("europe-west1-c",),
    }


@pytest.mark.parametrize(
    ("zone", "meant"),
    [
        ("us-esat-1b", "us-east-1b"),
        ("us-west-2c", "us-west-2b"),
        ("us-east-1", "us-east-1a"),
        ("US-EAST-1A", None),
        ("us-central1a", "us-central1-a"),
        ("us-east-1-a", "us-east-1a"),
        ("nowhere", None),
        ("", None),
    ],
)
def test_a_zone_of_no_region_is_refused_in_a_line(zone: str, meant: str | None) -> None:
    with pytest.raises(UserError) as caught:
        regions_of([zone], REGIONS)
    said = str(caught.value)
    assert said.startswith(
        f"zones: no prices are known for '{zone}', only for zones in europe-west1, europe-west10, us-"
    )
    assert said.endswith("More regions: mlcd catalog refresh aws --region REGION --region REGION")
    assert (f"did you mean '{meant}'?" in said) is (meant is not None)
    assert "\n" not in said
