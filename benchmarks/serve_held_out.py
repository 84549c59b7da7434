"""The H200's shipped models as held-out ones: the shared recording is the knowledge, the shipped models are searched.

python benchmarks/serve_held_out.py FOLDER OUT      FOLDER: a recording with points.csv, operators.csv and host.csv

Writes a folder OUT with both in the recording's format, and prints the command for the contest. Nothing of the grey-box
search was tuned on these 35 models. They were measured on another day than the recording.
"""

from __future__ import annotations

import csv
import shutil
import sys
from pathlib import Path

from mlcd.planners.serve.recordings import read_folder

POINTS = ("model", "family", "precision", "sm_share", "batch", "rps", "peak_mb", "weights_mb", "inputs")
OPERATORS = ("model", "precision", "batch", "operator", "calls", "self_device_us", "device_mem_mb")
OURS = Path(__file__).parents[1] / "mlcd" / "memory" / "knowledge" / "h200"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write(path: Path, columns: tuple[str, ...], found: list[dict[str, object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(found)


def main(folder: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    kinds = {model.facts.name: model.facts.inputs for model in read_folder(folder).knowledge.models}
    points: list[dict[str, object]] = [{**row, "inputs": kinds[row["model"]]} for row in rows(folder / "points.csv")]
    operators: list[dict[str, object]] = [dict(row) for row in rows(folder / "operators.csv")]
    seen = {row["model"] for row in points}
    for row in rows(OURS / "points.csv"):
        points.append({**row, "rps": row["rate"], "peak_mb": float(row["peak_gb"]) * 1e9 / 2**20})
    for row in rows(OURS / "operators.csv"):
        told = {"self_device_us": 1e6 * float(row["seconds"]), "device_mem_mb": row["memory_mb"]}
        operators.append({**row, **told})
    write(out / "points.csv", POINTS, points)
    write(out / "operators.csv", OPERATORS, operators)
    shutil.copy(folder / "host.csv", out / "host.csv")
    unseen = sorted({str(row["model"]) for row in points} - seen)
    print(f"mlcd bench serve {out} --latency-ms 30 --seeds 5 --method all --unseen {','.join(unseen)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
