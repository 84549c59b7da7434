"""A disk that cannot be written to is told in one line, and is no fault of the service; anything else is."""

from __future__ import annotations

import errno
import os

import pytest
from stage import API, staged


def failing(number: int):
    def route() -> None:
        raise OSError(number, os.strerror(number), "/var/lib/mlcd/state/secret-name")

    return route


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT], ids=errno.errorcode.get)
def test_a_full_or_locked_disk_is_a_503_that_names_the_trouble_and_no_path(number, tmp_path, caplog):
    with staged(tmp_path / "home") as stage:
        stage.app.add_api_route(f"{API}/write", failing(number))
        answer = stage.ask("GET", f"{API}/write", "vera")
    assert answer.status == 503
    assert os.strerror(number) in answer.error
    assert "secret-name" not in answer.error
    assert "Traceback" not in caplog.text


def test_any_other_failure_is_a_fault_which_the_servers_log_tells_whole(tmp_path):
    with staged(tmp_path / "home") as stage:
        stage.app.add_api_route(f"{API}/write", failing(errno.ECHILD))
        with pytest.raises(ChildProcessError):  # for the server's log, once it is answered
            stage.ask("GET", f"{API}/write", "vera")
        assert stage.begun.get_nowait() == 500
