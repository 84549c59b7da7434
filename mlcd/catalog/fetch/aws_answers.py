"""Parses responses of the AWS APIs. Pure functions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from mlcd.core.errors import CatalogError


@dataclass(frozen=True, slots=True)
class InstanceSpecs:
    """The specs of a type in DescribeInstanceTypes."""

    vcpus: float
    memory_gb: float
    accelerators: int
    network_gbps: float | None


def parse_instance_types(instance_types: Iterable[Mapping[str, Any]]) -> dict[str, InstanceSpecs]:
    """Specs by instance type, from the `InstanceTypes` of DescribeInstanceTypes."""
    try:
        return {described["InstanceType"]: _specs(described) for described in instance_types}
    except (KeyError, TypeError) as error:
        raise CatalogError(f"AWS DescribeInstanceTypes answered without {error}; the catalog is unchanged") from None


def parse_price_list(price_list: Iterable[str]) -> dict[str, float]:
    """On-demand dollars an hour by instance type, from the `PriceList` of GetProducts, whose items are JSON texts."""
    prices: dict[str, float] = {}
    for item in price_list:
        try:
            product = json.loads(item)
            instance_type = product["product"]["attributes"]["instanceType"]
            hourly = _on_demand_usd_per_hour(product)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CatalogError(
                f"AWS GetProducts answered a product that cannot be read ({error}); the catalog is unchanged"
            ) from None
        for usd in hourly:
            # the highest of several prices: an error must not lead to overspending
            prices[instance_type] = max(usd, prices.get(instance_type, 0.0))
    return prices


def parse_spot_prices(history: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Spot dollars an hour by instance type: the median over the zones of each zone's latest price."""
    latest: dict[tuple[str, str], tuple[Any, float]] = {}
    try:
        for entry in history:
            zone = entry["InstanceType"], entry["AvailabilityZone"]
            if zone not in latest or latest[zone][0] < entry["Timestamp"]:
                latest[zone] = entry["Timestamp"], float(entry["SpotPrice"])
    except (KeyError, TypeError, ValueError) as error:
        raise CatalogError(f"AWS DescribeSpotPriceHistory cannot be read ({error}); the catalog is unchanged") from None
    by_type: dict[str, list[float]] = {}
    for (instance_type, _), (_, usd) in latest.items():
        by_type.setdefault(instance_type, []).append(usd)
    return {instance_type: median(prices) for instance_type, prices in by_type.items()}


def _specs(described: Mapping[str, Any]) -> InstanceSpecs:
    gpus = described.get("GpuInfo", {}).get("Gpus", [])
    return InstanceSpecs(
        vcpus=float(described["VCpuInfo"]["DefaultVCpus"]),
        memory_gb=described["MemoryInfo"]["SizeInMiB"] / 1024,
        accelerators=sum(gpu["Count"] for gpu in gpus),
        network_gbps=_sustained_gbps(described.get("NetworkInfo", {})),
    )


def _sustained_gbps(network: Mapping[str, Any]) -> float | None:
    # '25 Gigabit' is sustained; 'Up to 10 Gigabit' is a burst, and the network cards state the baseline.
    # The cards come second: those of p3.16xlarge state 5 instead of 25, those of g6e.48xlarge 1,600 instead of 400.
    fixed = re.fullmatch(r"(?:(\d+)x )?([\d.]+) Gigabit", network.get("NetworkPerformance", ""))
    if fixed is not None:
        return int(fixed[1] or 1) * float(fixed[2])
    baseline = sum(card.get("BaselineBandwidthInGbps", 0.0) for card in network.get("NetworkCards", []))
    return float(baseline) or None


def _on_demand_usd_per_hour(product: Mapping[str, Any]) -> list[float]:
    dimensions = [
        dimension
        for term in product.get("terms", {}).get("OnDemand", {}).values()
        for dimension in term["priceDimensions"].values()
    ]
    prices = [float(d["pricePerUnit"]["USD"]) for d in dimensions if d["unit"] == "Hrs" and "USD" in d["pricePerUnit"]]
    # AWS lists what is billed elsewhere, such as a capacity block, at zero dollars: not a price
    return [usd for usd in prices if usd > 0]
