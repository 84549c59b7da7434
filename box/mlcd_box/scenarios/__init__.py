"""What may happen between MLCD and a cloud, by family.

A scenario brings something about and checks what only it can know; `play` then holds the ledger against the cloud's
bill and waits until nothing is left.
"""

from importlib import import_module

from mlcd_box.scenarios.scenario import SCENARIOS

for family in ("search", "spot", "failures", "serve_and_scale", "functions"):  # in the order of the table
    import_module(f"{__name__}.{family}")

__all__ = ["SCENARIOS"]
