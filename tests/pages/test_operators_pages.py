"""What operators see in the browser: workers and the queue, the audit log with filters; and a member's own tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

pytest.importorskip("procrastinate", reason="pip install 'mlcd[service]'")

pytestmark = pytest.mark.live

JOB = """\
name: waits
run: "true"
mlcd: {work: 1M, budget: $5, search: {nodes: 1..4, instances: [g4dn.xlarge]}}
"""
NOBODY = "No worker is running: submitted runs wait"


@dataclass
class Team:
    """A service without workers of its own, on a database that a test can reach."""

    url: str
    database: str
    admin: str

    def sql(self, *statements: str) -> None:
        import psycopg

        with psycopg.connect(self.database, autocommit=True) as connection:
            for each in statements:
                connection.execute(each)

    def client(self, token: str) -> httpx.Client:
        header = {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=f"{self.url}/api/v1", headers=header, timeout=120)


@pytest.fixture(scope="module")
def team(serve: Any, running_postgres: Any, tmp_path_factory: pytest.TempPathFactory) -> Team:
    url = running_postgres.new_database()
    folder = tmp_path_factory.mktemp("operated")
    served = serve(folder, "service", "--port", "0", "--workers", "0", MLCD_DATABASE_URL=url)
    return Team(served.url, url, re.findall(r"mlcd_[\w-]{43}", "".join(served.first_words))[0])


@pytest.fixture
def signed_in(page: Any, team: Team) -> Any:
    page.goto(f"{team.url}/sign-in")
    page.get_by_label("Token").fill(team.admin)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Runs").wait_for()
    return page


def test_who_waits_sees_their_place_no_worker_or_a_dead_one(signed_in, team, expect):
    page = signed_in
    with team.client(team.admin) as client:
        run = client.post("/runs", json={"kind": "train", "job": JOB}).json()["run"]
    page.goto(f"{team.url}/runs/{run}")
    notice = page.locator(".notice", has_text="Workers and queue")
    expect(notice).to_contain_text(NOBODY)
    team.sql("INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() + interval '1 day')")
    expect(notice).to_contain_text("Waits for a worker: 1 of 1 in the queue")
    notice.get_by_role("link").click()
    expect(page.get_by_role("table", name="The queue").get_by_role("link", name=run)).to_be_visible()
    take = "UPDATE procrastinate_jobs SET status = 'doing', worker_id = (SELECT max(id) FROM procrastinate_workers)"
    team.sql(take)
    drives = page.get_by_role("table", name="Workers").get_by_role("row", name="alive")
    expect(drives.get_by_role("link", name=run)).to_be_visible()
    expect(page.get_by_text("The queue is empty.")).to_be_visible()
    team.sql("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '60 s'")
    expect(page.get_by_role("table", name="Workers").get_by_role("row", name="silent")).to_be_visible()
    page.goto(f"{team.url}/runs/{run}")
    expect(notice).to_contain_text(re.compile("Its worker has sent no heartbeat for 1 m"))
    team.sql("DELETE FROM procrastinate_jobs", "DELETE FROM procrastinate_workers")


def test_a_member_makes_rotates_and_revokes_a_token(signed_in, team, expect):
    page = signed_in
    page.on("dialog", lambda dialog: dialog.accept())
    page.locator(".who summary").click()
    page.get_by_role("link", name="Your tokens").click()
    page.get_by_label("Name", exact=True).fill("C I")
    page.get_by_role("button", name="Make").click()
    expect(page.locator(".field-error")).to_contain_text("a name has up to 60 small letters")
    page.get_by_label("Name", exact=True).fill("ci")
    page.get_by_label("Scope").select_option("run")
    page.get_by_role("button", name="Make").click()
    first = page.locator(".token code").inner_text()
    with team.client(first) as client:
        assert client.get("/me").json()["scope"] == "run"
    page.get_by_role("button", name="Rotate: ci").click()
    expect(page.locator(".token code")).not_to_have_text(first)
    second = page.locator(".token code").inner_text()
    with team.client(first) as client:
        assert client.get("/me").status_code == 401
    with team.client(second) as client:
        assert client.get("/runs").status_code == 200
    page.get_by_role("button", name="Revoke: ci").click()
    expect(page.get_by_role("table", name="Your tokens")).to_have_count(0)
    with team.client(second) as client:
        assert client.get("/me").status_code == 401


def test_an_admin_adds_a_webhook_sees_why_a_test_does_not_arrive_and_removes_it(signed_in, team, expect):
    page = signed_in
    page.on("dialog", lambda dialog: dialog.accept())
    page.locator(".who summary").click()
    page.get_by_role("link", name="News").click()
    expect(page.get_by_text("No receivers yet")).to_be_visible()
    page.get_by_label("By").select_option("Slack")
    page.get_by_label("Address").fill("http://169.254.169.254/")
    page.get_by_role("button", name="Add").click()
    expect(page.locator(".field-error")).to_contain_text("http is only for this machine")
    page.get_by_label("Address").fill("http://127.0.0.1:1/secret-path")
    page.get_by_label("About", exact=True).select_option("a member's runs")
    page.get_by_label("Member", exact=True).fill("admni")
    page.get_by_role("button", name="Add").click()
    expect(page.locator(".field-error")).to_contain_text("unknown member 'admni': did you mean 'admin'?")
    page.get_by_label("Member", exact=True).fill("admin")
    page.get_by_role("button", name="left behind").click()
    page.get_by_role("button", name="Add").click()
    secret = page.locator(".token code").inner_text()
    row = page.get_by_role("table", name="Receivers of news").get_by_role("row", name="Slack, runs of admin")
    expect(row).to_contain_text("left behind")
    row.get_by_role("button", name="Test: ").click()
    expect(page.get_by_role("alert")).to_contain_text(
        "The test message did not arrive: http://127.0.0.1:1/… cannot be reached"
    )
    page.reload()
    expect(row).to_be_visible()
    assert secret not in page.content()
    assert "secret-path" not in page.content()
    row.get_by_role("button", name="Remove: ").click()
    expect(page.get_by_text("No receivers yet")).to_be_visible()


def test_the_audit_log_is_narrowed_and_taken_as_a_file(signed_in, team, expect):
    page = signed_in
    with team.client("mlcd_" + 43 * "x") as client:
        client.get("/me")
    page.goto(f"{team.url}/team")
    rows = page.get_by_role("table", name="The audit log").locator("tbody tr")
    expect(rows.first).to_be_visible()
    page.get_by_label("Outcome").select_option("refused")
    page.get_by_label("Action", exact=True).fill("authenticate")
    expect(rows.filter(has_text="sign in")).to_have_count(0)
    expect(rows.filter(has_text="refused").first).to_be_visible()
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download as CSV").click()
    lines = waiting.value.path().read_text().splitlines()
    assert waiting.value.suggested_filename == "mlcd-audit.csv"
    assert len(lines) > 1
    expect(rows).to_have_count(len(lines) - 1)
    assert all("authenticate" in each for each in lines[1:])
    page.get_by_label("Member or address").fill("nobody")
    expect(page.get_by_text("No entry matches these filters.")).to_be_visible()
