"""The documentation says everything there is, and what it shows works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_args

import click
import pytest
from every_command import ALONE
from pydantic import BaseModel

import mlcd
from mlcd.core.exit_codes import ExitCode
from mlcd.core.ledger import Entry
from mlcd.core.measurement import Outcome
from mlcd.planners.jobfile import blocks
from mlcd.planners.jobfile.read import parse_job
from mlcd.planners.jobfile.task import TASK_KEYS
from mlcd.planners.train import block as train_block
from mlcd.planners.train import model_keys, plan_keys

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
PAGES = sorted(page for place in ("*.md", "docs/**/*.md", "examples/*.md") for page in ROOT.glob(place))
EXAMPLES = sorted(path for path in ROOT.glob("examples/*") if path.suffix in (".py", ".yaml"))


def section(page: str, name: str) -> str:
    """What a page says under the heading that begins with a name."""
    for part in re.split(r"(?m)^## ", page)[1:]:
        heading = part.splitlines()[0]
        if heading == name or heading.startswith(f"{name} "):
            return part
    raise AssertionError(f"no section about '{name}'")


@pytest.mark.parametrize(("name", "command"), ALONE.items(), ids=ALONE)
def test_every_command_and_option_is_documented(name: str, command: click.Command):
    told = section((REFERENCE / "cli.md").read_text(encoding="utf-8"), name)
    for parameter in command.params:
        for word in (*parameter.opts, *parameter.secondary_opts) if isinstance(parameter, click.Option) else ():
            assert re.search(rf"`{re.escape(word)}[` ]", told), f"{name} {word}"


def test_no_option_is_documented_that_does_not_exist():
    page = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    for name, command in ALONE.items():
        known = {word for p in command.params for word in (*p.opts, *p.secondary_opts)} | {"-h", "--help"}
        rows = [line.split("|")[1] for line in section(page, name).splitlines() if line.startswith("| `-")]
        assert set(re.findall(r"`(--?[a-z0-9-]+)", " ".join(rows))) <= known, name


def test_every_exit_code_and_environment_variable_is_documented():
    told = (REFERENCE / "exit-codes.md").read_text(encoding="utf-8")
    assert set(re.findall(r"(?m)^\| (\d+) \|", told)) == {str(int(code)) for code in ExitCode}
    assert "MLCD_HOME" in (REFERENCE / "cli.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", mlcd.__all__)
def test_every_public_name_is_documented(name: str):
    page = (REFERENCE / "python.md").read_text(encoding="utf-8")
    assert re.search(rf"(?m)^### `{re.escape(name)}[`(]", page)
    assert name == "__version__" or (getattr(mlcd, name).__doc__ or "").strip()


def test_every_public_name_in_the_python_page_exists():
    headings = re.findall(r"(?m)^### `(\w+)", (REFERENCE / "python.md").read_text(encoding="utf-8"))
    assert sorted(headings) == sorted(mlcd.__all__)


def test_every_key_of_the_job_file_is_documented():
    page = (REFERENCE / "job-file.md").read_text(encoding="utf-8")
    things = [thing for module in (blocks, train_block, model_keys, plan_keys) for thing in vars(module).values()]
    models = [thing for thing in things if isinstance(thing, type) and issubclass(thing, BaseModel)]
    keys = {key for model in models for key in model.model_fields} | set(TASK_KEYS)
    assert {"work", "budget", "nodes", "epochs", "resources"} <= keys
    assert [key for key in sorted(keys) if f"`{key}`" not in page] == []


def test_every_kind_of_entry_and_every_outcome_is_documented():
    page = (REFERENCE / "ledger.md").read_text(encoding="utf-8")
    kinds = [field.default for entry in get_args(Entry) for field in fields(entry) if field.name == "kind"]
    assert len(kinds) == len(get_args(Entry))
    assert [kind for kind in kinds if f"| `{kind}` |" not in page] == []
    page = (REFERENCE / "python.md").read_text(encoding="utf-8")
    assert [outcome.name for outcome in Outcome if f"`{outcome.name}`" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_link_to_a_file_leads_somewhere(page: Path):
    text = re.sub(r"(?ms)^```.*?^```", "", page.read_text(encoding="utf-8"))
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"(?m)^\[[^\]]+\]: (\S+)", text)
    for target in targets:
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{page.relative_to(ROOT)} links to {target}"
        if anchor and there.suffix == ".md":
            assert anchor in anchors(there), f"{page.relative_to(ROOT)} links to {target}"


def test_the_map_leads_to_every_page():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = [str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if page != "index.md" and f"({page})" not in index] == []


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_files_and_functions_that_a_page_for_developers_names_exist(page: str):
    text = re.sub(r"(?ms)^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"))
    paths = set(re.findall(r"`((?:mlcd|mlcd_bench|mlcd_tracker|tests|pages|docs|examples|benchmarks)/[^`\s]*)`", text))
    assert len(paths) >= 5
    assert [path for path in sorted(paths) if "CLOUD" not in path and not list(ROOT.glob(path))] == []
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "mlcd").rglob("*.py"))
    functions = set(re.findall(r"`(\w+)\(\)`", text))
    assert [name for name in sorted(functions) if not re.search(rf"\bdef {name}\(", source)] == []


def anchors(page: Path) -> set[str]:
    """The names by which a page's headings can be linked to, as GitHub makes them."""
    headings = re.findall(r"(?m)^#+ (.+)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def fenced(page: Path, language: str) -> list[str]:
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"))


JOBS = [
    (page, number, block)
    for page in PAGES
    for number, block in enumerate(fenced(page, "yaml"), start=1)
    if "mlcd:" in block
]


@pytest.mark.parametrize(("page", "number", "block"), JOBS, ids=[f"{page.name}-{n}" for page, n, _ in JOBS])
def test_every_job_that_is_shown_can_be_read(page: Path, number: int, block: str):
    assert parse_job(block, page).work_samples > 0


PROGRAMS = [(page, number, block) for page in PAGES for number, block in enumerate(fenced(page, "python"), start=1)]


@pytest.mark.parametrize(("page", "number", "block"), PROGRAMS, ids=[f"{page.name}-{n}" for page, n, _ in PROGRAMS])
def test_every_program_that_is_shown_is_python(page: Path, number: int, block: str):
    compile(block, f"{page.name}, block {number}", "exec")


def test_the_tutorial_and_the_job_file_page_show_jobs():
    assert {page.name for page, _, _ in JOBS} >= {"tutorial.md", "job-file.md"}


def test_the_method_of_the_howto_keeps_the_contract():
    from mlcd.testing.strategies import StrategyContract

    space: dict[str, object] = {"__name__": "howto"}
    source = next(
        block for block in fenced(ROOT / "docs" / "howto" / "add-a-method.md", "python") if "@dataclass" in block
    )
    exec(compile(source, "add-a-method.md", "exec", dont_inherit=True), space)
    cheapest_first = space["CheapestFirst"]
    assert isinstance(cheapest_first, type)

    class Suite(StrategyContract):
        def strategy(self, seed: int):
            return cheapest_first()

    suite = Suite()
    suite.test_it_finishes_on_a_space_of_one()
    suite.test_it_finishes_when_nothing_can_run_the_job()
    suite.test_it_probes_nothing_twice_while_probes_are_whole()
    for seed in range(5):
        suite.test_it_keeps_every_promise_on_random_clouds(seed)


@pytest.mark.parametrize("example", EXAMPLES, ids=[path.name for path in EXAMPLES])
def test_every_example_runs(example: Path, tmp_path: Path):
    command = [str(example)] if example.suffix == ".py" else ["-m", "mlcd", "plan", str(example)]
    done = subprocess.run(
        [sys.executable, "-W", "error", *command],
        env={**os.environ, "MLCD_HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "simulated" in done.stdout


def test_every_example_is_listed():
    page = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in EXAMPLES if f"({path.name})" not in page] == []
