"""Lambda's rules that matter here: limits, a function's share of a CPU, and what a call is billed."""

from __future__ import annotations

import math

MB_PER_VCPU = 1_769
LEAST_MB, MOST_MB = 128, 10_240
LONGEST_S = 900
CONCURRENT = 1_000
"""Calls at once in an account and region."""
LARGEST_PAYLOAD = {"RequestResponse": 6_291_556, "Event": 1_048_576}
"""Bytes of a call's payload, by its type."""
LARGEST_CODE = 262_144_000
"""Bytes of a function's code and layers, unpacked."""
RETRIES_AFTER_S = (60.0, 120.0)
"""A queued call that failed is tried again, twice."""
BACK_OFF_S = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0)
"""A queued call that was throttled is tried again after these; then after the last, for six hours."""
KEPT_WARM_S = 300.0
"""An environment that nobody has called for so long is ended. AWS does not say how long it waits."""
CODES = {
    "InvalidParameterValueException": 400,
    "ResourceNotFoundException": 404,
    "ResourceConflictException": 409,
    "RequestTooLargeException": 413,
    "TooManyRequestsException": 429,
}


class Refused(Exception):
    """A request that is answered with an error: its code, as AWS names it, and a sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.status = code, CODES[code]


def vcpus(memory_mb: int) -> float:
    """CPUs of a function while a call runs."""
    return memory_mb / MB_PER_VCPU


def vcpus_at_init(memory_mb: int) -> float:
    """CPUs while the code is loaded: a whole one at the least. AWS does it and promises nothing."""
    return max(1.0, vcpus(memory_mb))


def billed_ms(init_s: float, ran_s: float) -> int:
    """Billed milliseconds of a call. Since August 2025 the loading of code from zip files is billed, too."""
    return math.ceil(round(1_000 * (init_s + ran_s), 3))


def check_size(memory_mb: int, timeout_s: int) -> None:
    """Refuse what Lambda does not sell."""
    if not LEAST_MB <= memory_mb <= MOST_MB:
        wanted = f"'memorySize' value failed to satisfy constraint: between {LEAST_MB} and {MOST_MB}"
        raise Refused("InvalidParameterValueException", f"Value '{memory_mb}' at {wanted}")
    if not 1 <= timeout_s <= LONGEST_S:
        wanted = f"'timeout' failed to satisfy constraint: between 1 and {LONGEST_S}"
        raise Refused("InvalidParameterValueException", f"Value '{timeout_s}' at {wanted}")


def check_payload(payload: bytes, kind: str) -> None:
    """Refuse a payload that is too large for its type of call."""
    if len(payload) > LARGEST_PAYLOAD[kind]:
        words = f"{len(payload)} byte payload is too large for the {kind} invocation type"
        raise Refused("RequestTooLargeException", f"{words} (limit {LARGEST_PAYLOAD[kind]} bytes)")


def back_off_s(attempt: int) -> float:
    """How long a throttled call waits in its queue before attempt number `attempt`, from 1."""
    return BACK_OFF_S[min(attempt, len(BACK_OFF_S)) - 1]
