"""Who asks: tokens, sessions, roles, the user at the other end of a connection; and how often one may ask."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
from datetime import UTC, date, datetime
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage import API, JOB, PLENTY, answering, staged

from mlcd.service.team.budget import Per
from mlcd.service.team.members import Role
from mlcd.service.web.errors import Refusal
from mlcd.service.web.safety import origin as peer
from mlcd.service.web.safety.limits import RateLimits, network
from mlcd.service.web.state import Limits


@pytest.fixture
def stage(tmp_path):
    with staged(tmp_path / "home") as stage:
        yield stage


@pytest.fixture
def alone(tmp_path):
    with staged(tmp_path / "home", mode="ui") as stage:
        yield stage


def test_everybody_is_told_who_they_are_and_what_is_left_to_them(stage):
    stage.state.members.change("ron", budget_usd=50.0)
    told = stage.ask("GET", f"{API}/me", "ron").json()
    assert (told["name"], told["role"], told["left_usd"], told["mode"]) == ("ron", "runner", 50.0, "service")
    assert (told["budget_per"], told["renewed_on"]) == ("total", None)
    assert stage.submit("ron", options={"on": "local"}).status == 202
    assert stage.ask("GET", f"{API}/me", "ron").json()["left_usd"] == 45.0
    stage.state.members.change("ron", budget_per=Per.MONTH)
    told = stage.ask("GET", f"{API}/me", "ron").json()
    assert (told["budget_per"], told["left_usd"]) == ("month", 45.0)
    assert date.fromisoformat(told["renewed_on"]) > datetime.now(UTC).date()


def test_one_person_needs_no_account_and_may_do_everything(alone):
    told = alone.ask("GET", f"{API}/me").json()
    assert (told["name"], told["role"], told["left_usd"]) == (None, "admin", None)
    assert alone.submit().status == 202
    assert alone.ask("POST", f"{API}/session", body={"token": "x"}).status == 409
    assert alone.ask("GET", f"{API}/members").status == 409
    assert alone.ask("GET", f"{API}/audit").json()["entries"][0]["who"] == "you"


def test_one_persons_service_answers_only_to_loopbacks_names_and_only_with_its_header(alone):
    assert alone.ask("GET", f"{API}/me", host="127.0.0.1:8421").status == 200
    assert alone.ask("GET", f"{API}/me", host="[::1]:8421").status == 200
    assert alone.ask("GET", f"{API}/me", host="evil.example").status == 403
    body = {"kind": "train", "job": JOB}
    assert alone.ask("POST", f"{API}/runs", body=body, headers={"x-mlcd": ""}).status == 403
    assert (
        alone.ask("POST", f"{API}/runs", body=body, headers={"x-mlcd": "1", "origin": "http://evil.example"}).status
        == 403
    )
    assert alone.executor.asked == []
    assert (
        alone.ask("POST", f"{API}/runs", body=body, headers={"x-mlcd": "1", "origin": "http://localhost"}).status == 202
    )


def test_a_session_stands_for_its_member_until_it_is_closed(stage):
    cookie = stage.sign_in("rita")
    assert stage.ask("GET", f"{API}/me", headers={"cookie": cookie}).json()["name"] == "rita"
    sent = {"cookie": cookie, "x-mlcd": "1", "origin": "http://localhost"}
    assert stage.ask("POST", f"{API}/runs", body={"kind": "train", "job": JOB}, headers=sent).status == 202
    assert stage.ask("DELETE", f"{API}/session", headers=sent).status == 204
    assert stage.ask("GET", f"{API}/me", headers={"cookie": cookie}).status == 401


def test_the_sessions_cookie_cannot_be_read_by_scripts_nor_sent_by_other_sites(tmp_path):
    for url, secure in (("http://localhost", False), ("https://mlcd.example", True)):
        with staged(tmp_path / url[:5], public_url=url) as stage:
            sent = {"x-mlcd": "1"}
            told = stage.ask("POST", f"{API}/session", body={"token": stage.tokens["ron"]}, headers=sent).cookies[0]
            flags = {part.strip().lower() for part in told.split(";")[1:]}
            assert {"httponly", "samesite=strict", "path=/"} <= flags
            assert ("secure" in flags) == secure
            assert stage.tokens["ron"] not in told


def test_every_sign_in_makes_a_session_of_its_own(stage):
    first, second = stage.sign_in("ron"), stage.sign_in("ron")
    assert first != second
    stage.ask("DELETE", f"{API}/session", headers={"cookie": first, "x-mlcd": "1"})
    assert stage.ask("GET", f"{API}/me", headers={"cookie": second}).status == 200


def test_a_new_token_ends_the_old_one_and_the_sessions(stage):
    cookie, old = stage.sign_in("ron"), stage.tokens["ron"]
    new = stage.ask("POST", f"{API}/members/ron/token", "ada").json()["token"]
    assert stage.ask("GET", f"{API}/me", headers={"authorization": f"Bearer {old}"}).status == 401
    assert stage.ask("GET", f"{API}/me", headers={"cookie": cookie}).status == 401
    assert stage.ask("GET", f"{API}/me", headers={"authorization": f"Bearer {new}"}).status == 200


def test_admins_add_change_and_remove_members_and_all_of_it_is_in_the_audit_log(stage):
    made = stage.ask(
        "POST", f"{API}/members", "ada", {"name": "eve", "role": "viewer", "team": "lab", "budget_usd": 10.0}
    )
    assert made.status == 201
    stage.tokens["eve"] = made.json()["token"]
    assert stage.submit("eve").status == 403
    changed = stage.ask("PATCH", f"{API}/members/eve", "ada", {"role": "runner"}).json()
    assert (changed["role"], changed["team"], changed["budget_usd"]) == ("runner", "lab", 10.0)
    assert stage.submit("eve").status == 202
    assert stage.ask("PATCH", f"{API}/members/eve", "ada", {"budget_usd": None}).json()["budget_usd"] is None
    monthly = {"budget_usd": 20.0, "budget_per": "month"}
    lab = {"name": "lab", **monthly, "spent_usd": 0.0, "claimed_usd": 0.0}
    assert stage.ask("PUT", f"{API}/teams/lab", "ada", monthly).json() == lab
    assert stage.ask("PUT", f"{API}/teams/lab", "ada", {"budget_usd": 20.0}).json() == lab
    assert lab in stage.ask("GET", f"{API}/teams", "ada").json()["teams"]
    assert stage.ask("DELETE", f"{API}/members/eve", "ada").status == 204
    assert stage.submit("eve").status == 401
    log = stage.ask("GET", f"{API}/audit", "ada").json()["entries"]
    done = [(each["who"], each["action"], each["outcome"]) for each in reversed(log)]
    assert [each for each in done if each[0] == "ada"] == [
        ("ada", "add member", "ok"),
        ("ada", "change member", "ok"),
        ("ada", "change member", "ok"),
        ("ada", "team budget", "ok"),
        ("ada", "team budget", "ok"),
        ("ada", "remove member", "ok"),
    ]
    assert ("eve", "submit", "ok") in done
    assert stage.tokens["eve"] not in str(log)


def test_too_many_requests_are_told_when_to_come_again(tmp_path):
    limits = Limits(per_minute=5, submissions_per_minute=2, sign_ins_per_minute=3)
    with staged(tmp_path / "home", limits=limits) as stage:
        answers = [stage.ask("GET", f"{API}/me", "ron") for _ in range(6)]
        assert [each.status for each in answers] == [200] * 5 + [429]
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 61
        assert stage.ask("GET", f"{API}/me", "rita").status == 200  # another member, the same address
        assert [stage.submit("ada").status for _ in range(3)] == [202, 202, 429]
        wrong = {"authorization": "Bearer mlcd_" + "A" * 43}
        assert [stage.ask("GET", f"{API}/me", headers=wrong).status for _ in range(4)] == [401, 401, 401, 429]


def test_an_address_that_floods_is_refused_before_anything_is_looked_up(tmp_path):
    with staged(tmp_path / "home", limits=Limits(per_minute=1)) as stage:
        statuses = [stage.ask("GET", f"{API}/me", client=("10.0.0.9", 1)).status for _ in range(11)]
        assert statuses == [401] * 10 + [429]
        assert stage.ask("GET", f"{API}/me", client=("10.0.0.8", 1)).status == 401


def test_all_addresses_of_one_ipv6_network_are_one():
    assert network("2001:db8::1") == network("2001:db8::ffff") != network("2001:db8:0:1::1")
    assert network("10.0.0.1") != network("10.0.0.2")
    rates = RateLimits(Limits(sign_ins_per_minute=2))
    for i in range(2):
        rates.count("sign-in", f"2001:db8::{i}")
    with pytest.raises(Refusal, match="try again in"):
        rates.count("sign-in", "2001:db8::3")


@given(st.sampled_from(list(Role)), st.sampled_from(list(Role)))
def test_each_role_may_what_those_before_it_may(has, asked):
    order = [Role.VIEWER, Role.RUNNER, Role.ADMIN]
    assert has.may(asked) == (order.index(has) >= order.index(asked))


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_the_kernel_tells_whose_process_has_connected(family, host):
    with socket.socket(family) as server:
        try:
            server.bind((host, 0))
        except OSError:
            pytest.skip("this machine has no IPv6 loopback")
        server.listen()
        with socket.create_connection(server.getsockname()[:2]) as client:
            scope = {"client": client.getsockname()[:2], "server": server.getsockname()[:2]}
            assert peer.uid_of(scope) == peer.uid_of(scope, peer.PROC) == os.getuid()
            peer.check_peer(scope)
        nobody = {"client": (host, 1), "server": server.getsockname()[:2]}
        assert peer.uid_of(nobody) is peer.uid_of(nobody, peer.PROC) is None


LINE = (
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:20E5 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1001        0 1 1\n"
    "   1: 0100007F:9C40 0100007F:20E5 01 00000000:00000000 00:00000000 00000000  1002        0 2 1\n"
)


def test_a_process_of_another_user_is_refused_and_so_is_one_that_cannot_be_told(tmp_path):
    (tmp_path / "tcp").write_text(LINE)
    scope = {"client": ("127.0.0.1", 40_000), "server": ("127.0.0.1", 8421)}
    assert peer.uid_of(scope, tmp_path) == 1002  # the one who opened it, not us at the other end
    peer.check_peer(scope, tmp_path, mine=1002)
    with pytest.raises(Refusal, match="another user"):
        peer.check_peer(scope, tmp_path, mine=1001)
    for other in (
        {**scope, "client": ("127.0.0.1", 1)},
        {**scope, "client": None},
        {**scope, "client": ("testclient", 5)},
    ):
        with pytest.raises(Refusal, match="is unknown"):
            peer.check_peer(other, tmp_path, mine=1001)


def test_one_persons_service_refuses_connections_that_are_not_on_this_machine(tmp_path):
    with staged(tmp_path / "home", mode="ui", same_user=True) as stage:
        assert stage.ask("GET", f"{API}/me").status == 403  # no such connection
        assert stage.ask("GET", f"{API}/me", client=("10.0.0.9", 5)).status == 403


def test_answers_tell_browsers_to_run_nothing_that_is_not_ours(stage):
    page, data = stage.ask("GET", "/"), stage.ask("GET", f"{API}/me", "ron")
    assert "script-src" not in page.headers["content-security-policy"]
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert "unsafe-eval" not in page.headers["content-security-policy"]
    assert data.headers["content-security-policy"].startswith("default-src 'none'")
    for answer in (page, data):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in answer.headers
        assert "strict-transport-security" not in answer.headers


def test_a_service_on_https_says_so(tmp_path):
    with staged(tmp_path / "home", public_url="https://mlcd.example", limits=PLENTY) as stage:
        told = stage.ask("GET", f"{API}/health", host="mlcd.example")
        assert "max-age" in told.headers["strict-transport-security"]
        assert stage.ask("GET", f"{API}/health", host="other.example").status == 403


def test_the_owner_of_a_run_and_admins_end_it_and_nobody_else(stage):
    run = stage.submit("rita").json()["run"]
    assert stage.ask("POST", f"{API}/runs/{run}/stop", "ron").status == 403
    assert stage.ask("POST", f"{API}/runs/{run}/stop", "vera").status == 403
    assert stage.ask("POST", f"{API}/runs/{run}/stop", "rita").status == 202
    assert stage.ask("POST", f"{API}/runs/{run}/stop", "ada").status == 202
    assert [each for each in stage.executor.asked if each[0] == "stop"] == [("stop", run)] * 2


def test_a_web_socket_is_closed(stage):
    sent = []

    async def opened() -> None:
        async def send(message):
            sent.append(message)

        await stage.app({"type": "websocket", "path": "/", "headers": []}, SimpleNamespace(), send)

    asyncio.run(opened())
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_another_user_of_the_machine_is_refused_by_a_real_server_and_its_own_user_is_not(tmp_path):
    curl = shutil.which("curl")
    if os.getuid() != 0 or curl is None:
        pytest.skip("becoming another user takes root, and asking as one takes curl: apt install curl")
    with staged(tmp_path / "home", mode="ui", same_user=True) as stage, answering(stage.app) as url:
        told = {}
        for user in (None, 65_534):
            asked = [
                curl,
                "-s",
                "--retry-connrefused",
                "--retry",
                "5",
                "-H",
                "X-Forwarded-For: 127.0.0.1",
                f"{url}{API}/me",
            ]
            told[user] = subprocess.run(asked, user=user, cwd="/", capture_output=True, text=True, check=True).stdout
    assert '"mode":"ui"' in told[None]
    assert "belongs to another user" in told[65_534]
