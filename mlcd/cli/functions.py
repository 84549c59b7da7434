"""Options of jobs on functions."""

from __future__ import annotations

import click

from mlcd.cli.options import written
from mlcd.planners.form.words import functions, memory, storages

allocation_options = (
    click.option(
        "--functions", metavar="RANGE", callback=written(functions), help="On functions: how many, such as 1..50."
    ),
    click.option(
        "--memory", metavar="RANGE", callback=written(memory), help="On functions: MB of each, such as 512..1769."
    ),
    click.option(
        "--storage",
        "storages",
        metavar="NAMES",
        callback=written(storages),
        help="On functions: where they meet: s3, dynamodb, elasticache, vm-ps; several with commas.",
    ),
    click.option("--concurrency", type=click.IntRange(1), help="On functions: how many the account runs at once."),
    click.option("--fresh", is_flag=True, help="On functions: calibrate again, whatever earlier runs have stored."),
)
tuning_options = (
    click.option("--trials", type=click.IntRange(1), help="Hyperparameter settings to try, such as 64."),
    click.option("--eta", type=click.IntRange(2), help="One trial of so many goes on after each stage; 2."),
    click.option("--epochs-per-stage", type=click.IntRange(1), help="Epochs of each trial in a stage; 2."),
)
target_loss = click.option("--target-loss", type=float, help="On functions: the loss that ends the training.")
