"""From a job file to a decision in Python, on the simulated cloud: python examples/python_api.py."""

from pathlib import Path

import mlcd

JOB = Path(__file__).with_name("resnet50.yaml")


def main() -> None:
    job = mlcd.load_job(JOB)
    ledger = mlcd.Ledger(None)  # in memory; mlcd.open_ledger() opens that of the command line
    run = mlcd.start(job, ledger)
    show(f"{run.name}, {run.cloud.provenance}, {len(run.cloud.space)} configurations", run.search())

    history = run.book.account.history
    print(f"  {len(history.measurements)} probes, ${history.spent_usd:.2f}, {history.elapsed_s / 60:.0f} min")
    for measurement in sorted(history.good, key=lambda m: m.rate, reverse=True)[:3]:
        print(f"  {measurement.configuration}: {measurement.rate:.0f} samples/s")

    # Another goal, from the same probes, at no cost.
    for goal in (
        mlcd.Goal(mlcd.Objective.CHEAPEST, deadline_s=12 * 3_600),
        mlcd.Goal(mlcd.Objective.FASTEST, budget_usd=50),
    ):
        show(str(goal), mlcd.what_if(run.name, ledger, goal))

    # The final run, simulated like everything above.
    if run.decision is not None and run.decision.certified:
        final = run.launch()
        assert final is not None
        print(f"the final run: {final.outcome}, ${final.usd:.2f}")


def show(title: str, decision: mlcd.Decision) -> None:
    print(title)
    if decision.configuration is not None and decision.forecast is not None:
        hours = decision.forecast.seconds / 3_600
        print(
            f"  {decision.configuration}: {hours:.1f} h, ${decision.forecast.usd:.2f}, certified {decision.certified}"
        )
    else:
        needs = [way.budget_usd or way.deadline_s for way in decision.relaxations]
        print(f"  cannot be certified: {decision.binding}; needs {needs}")


if __name__ == "__main__":
    main()
