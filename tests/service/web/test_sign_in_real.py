"""Sign-in at a real provider, which others certified: the whole way, by its own pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mlcd_fixtures.oidc_provider import CLIENT, SECRET, oidc_provider, sign_in_at
from signing_in import come_back, done, me, sent_away, session_of
from stage import Stage, staged

from mlcd.service.sign_in.provider import Provider
from mlcd.service.sign_in.settings import SignInSettings

pytestmark = pytest.mark.live
BACK = "http://localhost/sign-in/callback"
GROUPS = {"grace": ["staff", "vision"], "ada": ["mlcd-admins"], "eve": ["staff"]}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with oidc_provider(BACK, GROUPS) as issuer:
        told = {"issuer": issuer, "client_id": CLIENT, "name": "Real", "scopes": ["openid", "profile", "groups"]}
        roles = {"mlcd-admins": "admin", "vision": {"role": "runner", "team": "vision"}}
        settings = SignInSettings.model_validate({**told, "groups": roles})
        with staged(
            tmp_path_factory.mktemp("home"), provider=lambda now: Provider(settings, SECRET, BACK, now)
        ) as stage:
            yield stage


def issuer_of(stage: Stage) -> str:
    assert stage.state.provider is not None
    return stage.state.provider.settings.issuer


def test_a_person_signs_in_by_the_providers_pages_and_is_who_their_groups_say(stage):
    for _ in range(2):
        url, cookie = sent_away(stage)
        answer = sign_in_at(url, "grace", BACK)
        mine = me(stage, session_of(come_back(stage, cookie, answer))).json()
        assert (mine["name"], mine["role"], mine["team"]) == ("grace", "runner", "vision")
    assert [each[1] for each in done(stage, "add member", "change member", "sign in")] == [
        "add member",
        "sign in",
        "sign in",
    ]


def test_a_code_works_once_and_only_with_the_verifier_of_its_own_sign_in(stage):
    url, cookie = sent_away(stage)
    answer = sign_in_at(url, "grace", BACK)
    others_url, others = sent_away(stage)
    others_state = sign_in_at(others_url, "grace", BACK)["state"]
    injected = come_back(stage, others, {**answer, "state": others_state})
    assert (injected.status, injected.error) == (502, "Real does not take this sign-in (400, invalid_grant)")
    session_of(come_back(stage, cookie, answer))
    url, cookie = sent_away(stage)
    used = {**sign_in_at(url, "grace", BACK), "code": answer["code"]}
    assert come_back(stage, cookie, used).error == injected.error


def test_who_is_in_no_group_or_has_the_name_of_a_member_is_refused(stage):
    for name, why in (("eve", "eve is in no group that may use MLCD"), ("ada", "'ada' is, or was, a member")):
        url, cookie = sent_away(stage)
        told = come_back(stage, cookie, sign_in_at(url, name, BACK))
        assert told.status == 403
        assert told.error.startswith(why)
        assert f"{issuer_of(stage)} {name}" in told.error


def test_what_the_provider_itself_refuses_is_told(stage):
    url, cookie = sent_away(stage)
    answer = sign_in_at(url.replace("&scope=openid", "&scope=nothing"), "grace", BACK)
    told = come_back(stage, cookie, answer)
    assert told.status == 403
    assert told.error.startswith("Real did not sign you in: ")
