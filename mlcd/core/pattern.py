"""Regular expressions that a user writes.

RE2 matches them in a time that grows with the length of the text alone. Python's own engine can take for ever on a
pattern such as `(a+)+$`, and nothing could stop it.
"""

from __future__ import annotations

import re

import re2

_LOOKAROUND = ("(?=", "(?!", "(?<=", "(?<!")
_BACKREFERENCE = re.compile(r"\\[1-9]|\(\?P=")


def compile_pattern(written: str) -> re.Pattern[str]:
    """The pattern, ready to match; `ValueError` says why it cannot be."""
    options = re2.Options()
    options.log_errors = False
    try:
        compiled: re.Pattern[str] = re2.compile(written, options)  # its methods are those of `re`
        return compiled
    except UnicodeError:
        raise ValueError("it is not text in UTF-8") from None
    except re2.error as error:
        raise ValueError(_reason(written, error)) from None


def _reason(written: str, error: Exception) -> str:
    raw = error.args[0] if error.args else ""
    reason = raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)
    if any(operator in reason for operator in _LOOKAROUND):
        return "lookahead and lookbehind are not supported: patterns are matched by RE2, in linear time"
    if _BACKREFERENCE.search(written):
        return "backreferences are not supported: patterns are matched by RE2, in linear time"
    return reason
