"""Convert ledger entries from before payloads had kinds to today's format.

Until November 2026 a job, a configuration, a launch, a measurement and a decision each had a field for every planner,
all but one of them empty. `upgraded` recognises these objects by their keys, anywhere in an entry.
"""

from __future__ import annotations

from typing import Any


def upgraded(value: Any) -> Any:
    """The value in today's format; unchanged if it is in that format already."""
    if isinstance(value, list):
        return [upgraded(each) for each in value]
    if not isinstance(value, dict):
        return value
    new = {key: upgraded(each) for key, each in value.items()}
    if "work_samples" in new and "goal" in new:
        _job(new)
    elif "purpose" in new and "label" in new:
        _launch(new)
    elif "outcome" in new and "configuration" in new:
        _measurement(new)
    elif "certified" in new and "relaxations" in new:
        _decision(new)
    elif "offer" in new and isinstance(new.get("nodes"), int):
        _configuration(new)
    elif "offer" in new and isinstance(new.get("nodes"), list):
        _choice(new)
    elif "budget_usd" in new and "configuration" in new:
        _relaxation(new)
    return new


def _tagged(kind: str, fields: Any) -> dict[str, Any] | None:
    return {"kind": kind, **fields} if fields is not None else None


def _job(job: dict[str, Any]) -> None:
    service, functions, scale = (job.pop(name, None) for name in ("service", "serverless", "elastic"))
    asks = (_tagged("serve.task", service), _tagged("functions.task", functions), _tagged("scale.task", scale))
    job.setdefault("ask", next((ask for ask in asks if ask is not None), None))


def _configuration(configuration: dict[str, Any]) -> None:
    allocation, surcharge = configuration.pop("allocation", None), configuration.pop("surcharge", None) or {}
    batch, knobs = configuration.pop("batch", None), configuration.pop("knobs", None)
    if allocation is not None:
        configuration["setting"] = _tagged("functions.allocation", allocation)
        once, beside = surcharge.get("usd", 0.0), surcharge.get("usd_per_hour", 0.0)
        configuration["billing"] = {"kind": "functions.by-use", "once_usd": once, "beside_usd_per_hour": beside}
    elif knobs:
        configuration["setting"] = {"kind": "serve.settings", "knobs": knobs}
    elif batch is not None:
        configuration["setting"] = {"kind": "scale.batch", "samples": batch}


def _choice(choice: dict[str, Any]) -> None:
    settings, batches = choice.pop("settings", None) or [], sorted(choice.pop("batches", None) or [])
    choice["settings"] = [
        each if isinstance(each, dict) else {"kind": "serve.settings", "knobs": each} for each in settings
    ] or [{"kind": "scale.batch", "samples": batch} for batch in batches]


def _launch(launch: dict[str, Any]) -> None:
    work = launch.get("work")
    if launch.pop("noise", False):
        launch["work"] = {"kind": "scale.measure-noise"}
    elif work is not None and "kind" not in work:
        launch["work"] = _tagged("functions.epochs", work)


def _measurement(measurement: dict[str, Any]) -> None:
    names = ("epochs", "calibrated", "work")
    functions = {name: each for name in names if (each := measurement.pop(name, None))}
    served, noise = measurement.pop("served", None), measurement.pop("noise", None)
    evidence = (
        _tagged("functions.evidence", functions or None),
        _tagged("serve.served", served),
        _tagged("scale.noise", noise),
    )
    measurement.setdefault("evidence", next((each for each in evidence if each is not None), None))


def _decision(decision: dict[str, Any]) -> None:
    plans, calibration = decision.pop("plans", None), decision.pop("calibration", None)
    if plans or calibration:
        decision["plan"] = {"kind": "functions.plan", "plans": plans or [], "calibration": calibration}


def _relaxation(way: dict[str, Any]) -> None:
    caps, min_rate = way.pop("caps", None), way.pop("min_rate", None)
    if caps or min_rate is not None:
        way["easing"] = {"kind": "serve.eased", "caps": caps or [], "min_rate": min_rate}
