"""Retries: transient errors are retried for the stated time; other errors are raised at once."""

from __future__ import annotations

import pytest

from mlcd.core.clock import VirtualClock
from mlcd.core.errors import UnknownName, UserError
from mlcd.planners.functions.storages import StorageGone, connect
from mlcd.planners.functions.storages.aws import aws_error_kind
from mlcd.planners.functions.storages.storage import RETRY_S, ErrorKind, RetryingStorage, TooManyRequests


class Flaky:
    def __init__(self, failures: float, error: Exception) -> None:
        self.left, self.error = failures, error

    def __call__(self) -> str:
        self.left -= 1
        if self.left >= 0:
            raise self.error
        return "answer"


def test_a_short_outage_is_retried_and_every_try_counts_as_a_request():
    clock = VirtualClock()
    client = RetryingStorage("vm-ps", "tcp://host:1", 5.0, clock)
    assert client.request(Flaky(4, ConnectionResetError("gone"))) == "answer"
    assert client.requests == 5
    assert 0 < clock.elapsed_s() < 5.0


def test_the_error_about_a_long_outage_names_the_storage_and_the_duration():
    clock = VirtualClock()
    client = RetryingStorage("vm-ps", "tcp://host:1", 5.0, clock)
    with pytest.raises(StorageGone) as caught:
        client.request(Flaky(float("inf"), ConnectionRefusedError("refused\nmore")))
    assert str(caught.value) == "vm-ps at tcp://host:1 has not answered for 5 s (refused)"
    assert 4.0 <= clock.elapsed_s() <= 5.0


def test_a_programming_error_is_not_retried():
    client = RetryingStorage("vm-ps", "tcp://host:1", RETRY_S, VirtualClock())
    with pytest.raises(ZeroDivisionError):
        client.request(Flaky(1, ZeroDivisionError()))
    assert client.requests == 1


def test_a_function_keeps_its_quota_of_requests():
    client = RetryingStorage("s3", "s3://bucket", RETRY_S, VirtualClock())
    client.most_requests = 2
    assert client.request(lambda: "one") == "one"
    assert client.request(lambda: "two") == "two"
    with pytest.raises(TooManyRequests, match="the 2 requests"):
        client.request(lambda: "three")
    assert client.requests == 2


@pytest.mark.parametrize(
    ("name", "url", "form"),
    [
        ("s3", "redis://host:1/0", "s3://BUCKET or http://HOST:PORT/BUCKET"),
        ("s3", "http://127.0.0.1:1", "names no bucket"),
        ("dynamodb", "http://127.0.0.1:1/a/b", "names no table"),
        ("elasticache", "host:6379", "redis://HOST:PORT/DB"),
        ("vm-ps", "tcp://host", "tcp://HOST:PORT"),
        ("vm-ps", "tcp://host:port", "tcp://HOST:PORT"),
        ("vm-ps", "", "tcp://HOST:PORT"),
    ],
)
def test_the_error_about_a_malformed_address_shows_the_right_form(name, url, form):
    with pytest.raises(UserError, match=form) as caught:
        connect(name, url)
    assert url in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_error_about_an_unknown_storage_has_a_suggestion():
    with pytest.raises(UnknownName, match="did you mean 'dynamodb'"):
        connect("dynamo", "http://host/table")


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("SlowDown", 503, ErrorKind.TRANSIENT),
        ("ProvisionedThroughputExceededException", 400, ErrorKind.TRANSIENT),
        ("SomethingNew", 500, ErrorKind.TRANSIENT),
        ("NoSuchBucket", 404, ErrorKind.LOST),
        ("ResourceNotFoundException", 400, ErrorKind.LOST),
        ("AccessDenied", 403, ErrorKind.REFUSED),
    ],
)
def test_errors_of_aws_are_transient_or_final(code, status, kind):
    exceptions = pytest.importorskip("botocore.exceptions")
    told = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    assert aws_error_kind(exceptions.ClientError(told, "PutObject")) is kind


def test_missing_credentials_are_final_and_a_programming_error_is_not_one_of_aws():
    exceptions = pytest.importorskip("botocore.exceptions")
    assert aws_error_kind(exceptions.NoCredentialsError()) is ErrorKind.REFUSED
    assert aws_error_kind(ZeroDivisionError()) is ErrorKind.OTHER
