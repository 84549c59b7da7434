"""The scenarios of `box test`: what can happen between MLCD and a cloud.

A scenario makes something happen and checks what is particular to it. After that, `run_scenario` waits until nothing is
left in the cloud, and compares the ledger with the cloud's bill.
"""

from importlib import import_module

from mlcd_box.scenarios.registry import SCENARIOS

for family in ("search", "spot", "failures", "serve_and_scale", "functions"):  # in the order of the table
    import_module(f"{__name__}.{family}")

__all__ = ["SCENARIOS"]
