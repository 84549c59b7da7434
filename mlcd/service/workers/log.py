"""The log of whoever drives runs: one line of printable text for each message, whatever a job or a cloud has said."""

from __future__ import annotations

import logging
import sys

LOG = logging.getLogger("mlcd.service.workers")


class OneLine(logging.Formatter):
    """Says what is in a message, and lets none of it look like another message, or command somebody's terminal."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """The message; the stack of a bug comes after it, on lines of its own."""
        return "".join(each if each.isprintable() else repr(each)[1:-1] for each in super().formatMessage(record))


def to_stderr(force: bool = False) -> None:
    """Tell warnings there, unless somebody else has said where the log goes; `force`: also then."""
    if force or not logging.getLogger().handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(OneLine("mlcd: %(message)s"))
        logging.basicConfig(level=logging.WARNING, handlers=[handler], force=force)
