"""Run `mlcd` as `python -m mlcd`."""

from mlcd.cli import main

main()
