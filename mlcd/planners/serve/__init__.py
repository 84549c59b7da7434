"""Serve a model that nobody has seen before: what may vary, and the ways to search it."""

from mlcd.planners.serve.falcon import Falcon
from mlcd.planners.serve.gp_ei import GpEi
from mlcd.planners.serve.grey_box import GreyBox

__all__ = ["Falcon", "GpEi", "GreyBox"]
