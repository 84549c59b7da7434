"""Lambda's rules: limits, a function's share of a CPU, and the billed time of a call."""

from __future__ import annotations

import math

MB_PER_VCPU = 1_769
MIN_MB, MAX_MB = 128, 10_240
MAX_TIMEOUT_S = 900
CONCURRENT = 1_000
"""Limit of calls at once in an account and region."""
MAX_PAYLOAD = {"RequestResponse": 6_291_556, "Event": 1_048_576}
"""Maximum bytes of a call's payload, by its type."""
MAX_CODE = 262_144_000
"""Maximum bytes of a function's code and layers, unpacked."""
RETRIES_AFTER_S = (60.0, 120.0)
"""Pauses before the two retries of a failed queued call."""
BACK_OFF_S = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0)
"""Pauses before retries of a throttled queued call; the last one repeats. (AWS gives up after six hours.)"""
KEPT_WARM_S = 300.0
"""An environment is ended if it was not used for so long. AWS does not publish its own time."""
CODES = {
    "InvalidParameterValueException": 400,
    "ResourceNotFoundException": 404,
    "ResourceConflictException": 409,
    "RequestTooLargeException": 413,
    "TooManyRequestsException": 429,
}


class ApiError(Exception):
    """An error response: AWS's error code, and a message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.status = code, CODES[code]


def vcpus(memory_mb: int) -> float:
    """The vCPUs of a function while a call runs."""
    return memory_mb / MB_PER_VCPU


def vcpus_at_init(memory_mb: int) -> float:
    """The vCPUs while the code is loaded: at least one. AWS does this without promising it."""
    return max(1.0, vcpus(memory_mb))


def billed_ms(init_s: float, ran_s: float) -> int:
    """The billed milliseconds of a call. Since August 2025, loading code from zip files is billed, too."""
    return math.ceil(round(1_000 * (init_s + ran_s), 3))


def check_size(memory_mb: int, timeout_s: int) -> None:
    """Refuse a memory size or a timeout outside of Lambda's limits."""
    if not MIN_MB <= memory_mb <= MAX_MB:
        wanted = f"'memorySize' value failed to satisfy constraint: between {MIN_MB} and {MAX_MB}"
        raise ApiError("InvalidParameterValueException", f"Value '{memory_mb}' at {wanted}")
    if not 1 <= timeout_s <= MAX_TIMEOUT_S:
        wanted = f"'timeout' failed to satisfy constraint: between 1 and {MAX_TIMEOUT_S}"
        raise ApiError("InvalidParameterValueException", f"Value '{timeout_s}' at {wanted}")


def check_payload(payload: bytes, kind: str) -> None:
    """Refuse a payload that is too large for its type of call."""
    if len(payload) > MAX_PAYLOAD[kind]:
        words = f"{len(payload)} byte payload is too large for the {kind} invocation type"
        raise ApiError("RequestTooLargeException", f"{words} (limit {MAX_PAYLOAD[kind]} bytes)")


def back_off_s(attempt: int) -> float:
    """How long a throttled call waits in its queue before retry number `attempt`, counted from 1."""
    return BACK_OFF_S[min(attempt, len(BACK_OFF_S)) - 1]
