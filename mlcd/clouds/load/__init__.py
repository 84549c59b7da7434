"""Loads for servers: when requests are sent, how, and what comes of them."""

from mlcd.clouds.load.arrivals import Closed, Open
from mlcd.clouds.load.generate import Report, generate
from mlcd.clouds.load.http import Answer, Http, Request
from mlcd.clouds.load.target import RequestFailed, Target

__all__ = ["Answer", "Closed", "Http", "Open", "Report", "Request", "RequestFailed", "Target", "generate"]
