"""Answers that must let nobody in: forged, replayed, expired, of another provider, or of none."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from datetime import timedelta

import pytest
from signing_in import OURS, come_back, entered, sent_away, session_of, signing_in
from small_provider import by_client_secret, by_public_key, by_stranger, none_of, signed
from stage import API, PLENTY

from mlcd.service.sign_in.pending import LASTS

BEGIN_AGAIN = "this sign-in was begun in another browser, is over, or took longer than 10 minutes; sign in again"
NOT_VALID = "the token of Keycloak is not valid: "
ALGORITHM = NOT_VALID + "its signature is not accepted"
NOW = int(time.time())


@pytest.fixture
def stage(tmp_path, small):
    small.person = {"sub": "g-1", "preferred_username": "grace"}
    with signing_in(tmp_path / "home", small) as stage:
        yield stage


def refused(stage, told, status: int, line: str) -> None:
    """With one line, which the audit log has too; and nobody is a member, or has a session, who was not before."""
    assert (told.status, told.error) == (status, line)
    assert told.cookies == ()
    entry = stage.state.audit.entries()[0]
    assert (entry.action, entry.outcome, entry.detail) == ("sign in", "refused", line)
    assert "grace" not in [each.name for each in stage.state.members.all()]


@pytest.mark.parametrize(
    "claims, why",
    [
        ({"nonce": "of another sign-in"}, "claim 'nonce'"),
        ({"nonce": None}, "claim 'nonce'"),
        ({"aud": "another-client"}, "claim 'aud'"),
        ({"aud": ["mlcd", "another-client"]}, "claim 'azp'"),
        ({"azp": "another-client"}, "claim 'azp'"),
        ({"iss": "https://evil.example"}, "claim 'iss'"),
        ({"exp": NOW - 3600, "iat": NOW - 7200}, "it has expired; is a clock wrong?"),
        ({"exp": None}, "claim 'exp'"),
        ({"exp": float("nan")}, "claim 'exp'"),
        ({"iat": NOW + 3600}, "claim 'iat'"),
        ({"nbf": NOW + 3600}, "claim 'nbf'"),
        ({"sub": None}, "claim 'sub'"),
        ({"sub": ""}, "claim 'sub'"),
        ({"sub": 7}, "claim 'sub'"),
        ({"sub": "a\nb"}, "claim 'sub'"),
        ({"sub": "x" * 256}, "claim 'sub'"),
        ({"at_hash": "of another token"}, "claim 'at_hash'"),
    ],
)
def test_a_token_with_a_wrong_claim_lets_nobody_in(claims, why, stage, small):
    small.claims = claims
    refused(stage, entered(stage, small), 502, NOT_VALID + why)


@pytest.mark.parametrize(
    "sign, why",
    [
        (none_of, ALGORITHM),
        (by_public_key, ALGORITHM),
        (by_client_secret, ALGORITHM),
        (by_stranger, NOT_VALID + "its signature is wrong"),
        (lambda claims, key: "", ALGORITHM),
        (lambda claims, key: "a.b.c", ALGORITHM),
        (lambda claims, key: "\N{SNOWMAN}", ALGORITHM),
    ],
)
def test_a_token_that_its_key_did_not_sign_lets_nobody_in(sign, why, stage, small):
    small.sign = sign
    refused(stage, entered(stage, small), 502, why)


def test_a_state_that_was_used_is_another_browsers_or_is_none_of_ours_lets_nobody_in(stage, small):
    url, cookie = sent_away(stage)
    _, others = sent_away(stage)
    answer = small.consents(url)
    refused(stage, come_back(stage, "", answer), 403, BEGIN_AGAIN)  # another browser: a link that somebody sent
    refused(stage, come_back(stage, others, answer), 403, BEGIN_AGAIN)
    refused(stage, come_back(stage, "mlcd_sign_in=" + "x" * 5_000, answer), 403, BEGIN_AGAIN)
    assert "/token" not in small.asked  # no code was sent on
    assert come_back(stage, cookie, answer).status == 204
    told = come_back(stage, cookie, small.consents(url))
    assert (told.status, told.error) == (403, BEGIN_AGAIN)


def test_a_wrong_state_uses_the_sign_in_up(stage, small):
    url, cookie = sent_away(stage)
    answer = small.consents(url)
    refused(stage, come_back(stage, cookie, {**answer, "state": "guessed"}), 403, BEGIN_AGAIN)
    refused(stage, come_back(stage, cookie, answer), 403, BEGIN_AGAIN)


def test_a_sign_in_that_takes_too_long_is_over(stage, small):
    url, cookie = sent_away(stage)
    stage.later.append(LASTS)
    refused(stage, come_back(stage, cookie, small.consents(url)), 403, BEGIN_AGAIN)


def test_another_sites_page_can_neither_begin_nor_finish_a_sign_in(stage, small):
    url, cookie = sent_away(stage)
    answer = small.consents(url)
    for lie in ({}, {"x-mlcd": "1", "origin": "https://evil.example"}, {"x-mlcd": "1", "sec-fetch-site": "cross-site"}):
        assert stage.ask("POST", f"{API}/sign-in", headers=lie).status == 403
        sent = {**lie, "cookie": cookie}
        assert stage.ask("POST", f"{API}/sign-in/callback", body=answer, headers=sent).status == 403
    assert come_back(stage, cookie, answer).status == 204
    assert stage.ask("GET", f"{API}/sign-in/callback?code=x&state=y", headers={"cookie": cookie}).status in (401, 405)


def test_an_answer_that_came_from_another_provider_is_not_sent_on(stage, small):
    url, cookie = sent_away(stage)
    mixed_up = {**small.consents(url), "iss": "https://evil.example"}
    refused(stage, come_back(stage, cookie, mixed_up), 403, "this answer is not from Keycloak; begin again")
    assert "/token" not in small.asked


def test_a_provider_that_always_says_who_it_is_has_to_say_it(tmp_path, small):
    small.metadata = {"authorization_response_iss_parameter_supported": True}
    small.person = {"sub": "g-1", "preferred_username": "grace"}
    with signing_in(tmp_path / "home", small) as stage:
        refused(stage, entered(stage, small), 403, "this answer is not from Keycloak; begin again")
        url, cookie = sent_away(stage)
        session_of(come_back(stage, cookie, {**small.consents(url), "iss": small.issuer}))


@pytest.mark.parametrize(
    "metadata, why",
    [
        ({"issuer": "https://evil.example"}, "Keycloak calls itself 'https://evil.example', not 'ISSUER'"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "is not an https URL"),
        ({"authorization_endpoint": "http://evil.example/"}, "is not an https URL"),
        ({"authorization_endpoint": None}, "is not an https URL"),
    ],
)
def test_nobody_is_sent_where_the_provider_cannot_be(metadata, why, stage, small):
    small.metadata = metadata
    told = stage.ask("POST", f"{API}/sign-in", headers=OURS)
    assert told.status == 502
    assert why.replace("ISSUER", small.issuer) in told.error
    assert told.cookies == ()


def test_a_code_is_not_sent_where_it_would_be_read(stage, small):
    small.metadata = {"token_endpoint": "http://evil.example/token"}
    told = entered(stage, small)
    assert told.status == 502
    assert "token_endpoint 'http://evil.example/token' is not an https URL" in told.error


@pytest.mark.parametrize(
    "answer, why",
    [
        ((400, b'{"error": "invalid_grant"}'), "(400, invalid_grant)"),
        ((400, b'{"error": "<script>"}'), "(400)"),
        ((500, b"oops"), "(500)"),
        ((302, b""), "(302)"),
        ((200, b"[]"), "(200)"),
        ((200, b"[" * 100_000), "(200)"),
        ((200, b'{"a": "' + b"x" * 2_000_000 + b'"}'), "(200)"),
    ],
)
def test_a_provider_that_does_not_take_the_code_is_told_in_one_line(answer, why, stage, small):
    small.refuses = answer
    refused(stage, entered(stage, small), 502, f"Keycloak does not take this sign-in {why}")


def test_a_provider_that_is_away_is_told_and_tokens_still_sign_in(tmp_path, small):
    with signing_in(tmp_path / "home", small, issuer="http://127.0.0.1:1") as stage:
        told = stage.ask("POST", f"{API}/sign-in", headers=OURS)
        assert (told.status, told.error) == (502, "Keycloak cannot be reached (ConnectError); try again")
        assert stage.sign_in("ron")


def test_somebody_who_says_no_at_the_provider_is_told_so(stage, small):
    for error, word in (("access_denied", "access_denied"), ("<b>hi</b>", "it gives no reason")):
        url, cookie = sent_away(stage)
        answer = {"error": error, "state": small.consents(url)["state"]}
        refused(stage, come_back(stage, cookie, answer), 403, f"Keycloak did not sign you in: {word}")


def test_a_new_key_of_the_provider_is_taken_and_the_old_one_is_not(stage, small):
    session_of(entered(stage, small))
    old = small.key
    small.rotates()
    session_of(entered(stage, small))
    assert small.asked.count("/jwks") == 2
    small.sign = lambda claims, _: signed(claims, old)
    told = entered(stage, small)
    assert (told.status, told.error) == (502, NOT_VALID + "it is signed with an unknown key")


def test_a_key_that_the_provider_took_back_is_good_for_an_hour_at_most(stage, small):
    session_of(entered(stage, small))
    old = small.key
    small.rotates()
    small.sign = lambda claims, _: signed(claims, old)
    small.claims = {"exp": NOW + 7_200}
    session_of(entered(stage, small))
    stage.later.append(timedelta(hours=1))
    assert entered(stage, small).error == NOT_VALID + "it is signed with an unknown key"


@pytest.mark.parametrize("groups", [7, True, {"mlcd-admins": True}, [["mlcd-admins"], 7, None], "MLCD-ADMINS", ""])
def test_what_is_no_list_of_groups_is_no_group(groups, stage, small):
    small.claims = {"groups": groups}
    told = entered(stage, small)
    assert told.error.startswith("grace is in no group that may use MLCD")


@pytest.mark.parametrize(
    "metadata", [{"jwks_uri": 7}, {"token_endpoint_auth_methods_supported": 7}, {"token_endpoint": ["x"]}]
)
def test_a_provider_that_describes_itself_oddly_is_no_fault_of_ours(metadata, stage, small):
    small.metadata = metadata
    assert entered(stage, small).status == 502


def test_who_guesses_is_slowed_down(tmp_path, small):
    with signing_in(tmp_path / "home", small, limits=replace(PLENTY, sign_ins_per_minute=3)) as stage:
        statuses = [come_back(stage, "mlcd_sign_in=x", {"state": "y", "code": "z"}).status for _ in range(5)]
        assert statuses == [403, 403, 403, 429, 429]
        assert stage.ask("POST", f"{API}/sign-in", headers=OURS).status == 429


def test_no_code_token_or_secret_is_in_a_log_or_the_audit(stage, small, caplog):
    with caplog.at_level(logging.DEBUG):
        url, cookie = sent_away(stage)
        answer = small.consents(url)
        told = come_back(stage, cookie, answer)
        small.claims = {"nonce": "x"}
        entered(stage, small)
        small.refuses = (400, b'{"error": "invalid_grant", "error_description": "code-2"}')
        entered(stage, small)
    written = caplog.text + "".join(map(str, stage.state.audit.entries()))
    secrets = [answer["code"], answer["state"], "a-c-c-e-s-s", "s+e/c", "s%2Be", "eyJ", "code-2", "verifier"]
    secrets += [session_of(told)["cookie"].partition("=")[2], cookie.partition("=")[2]]
    assert [each for each in secrets if each in written] == []
