"""Loads for servers: when requests are sent, how, and what comes of them."""

from mlcd.load.arrivals import Closed, Open
from mlcd.load.generate import Report, generate
from mlcd.load.http import Answer, Http, Request
from mlcd.load.target import RequestFailed, Target

__all__ = ["Answer", "Closed", "Http", "Open", "Report", "Request", "RequestFailed", "Target", "generate"]
