"""Regular expressions that users write, matched by RE2 in linear time.

Python's own engine can take forever on a pattern such as `(a+)+$`, and cannot be stopped.
"""

from __future__ import annotations

import re

import re2

_LOOKAROUND = ("(?=", "(?!", "(?<=", "(?<!")
_BACKREFERENCE = re.compile(r"\\[1-9]|\(\?P=")


def compile_pattern(written: str) -> re.Pattern[str]:
    """Compile the pattern; `ValueError` says what is wrong with it."""
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
