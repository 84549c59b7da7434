"""`python -m mlcd` is `mlcd`."""

from mlcd.cli import main

main()
