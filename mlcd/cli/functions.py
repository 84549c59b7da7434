"""Options of jobs on functions."""

from __future__ import annotations

import click

from mlcd.cli.options import parsed_by
from mlcd.planners.form.words import functions, memory, storages

allocation_options = (
    click.option(
        "--functions", metavar="RANGE", callback=parsed_by(functions), help="On functions: how many, such as 1..50."
    ),
    click.option(
        "--memory", metavar="RANGE", callback=parsed_by(memory), help="On functions: MB of each, such as 512..1769."
    ),
    click.option(
        "--storage",
        "storages",
        metavar="NAMES",
        callback=parsed_by(storages),
        help="On functions: their storage: s3, dynamodb, elasticache, vm-ps; several with commas.",
    ),
    click.option("--concurrency", type=click.IntRange(1), help="On functions: how many the account can run at once."),
    click.option("--fresh", is_flag=True, help="On functions: calibrate again, without stored calibrations."),
)
tuning_options = (
    click.option("--trials", type=click.IntRange(1), help="Hyperparameter settings to try, such as 64."),
    click.option("--eta", type=click.IntRange(2), help="One of so many trials continues after each stage; 2."),
    click.option("--epochs-per-stage", type=click.IntRange(1), help="Epochs of each trial in a stage; 2."),
)
target_loss = click.option("--target-loss", type=float, help="On functions: the loss that ends the training.")
