"""The rules of the house: who may import whom, no cycles, small files, a light core."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import mlcd
import mlcd_bench

ROOT = Path(mlcd.__file__).parent
PACKAGES = {"mlcd": ROOT, "mlcd_bench": Path(mlcd_bench.__file__).parent}
LEVEL = {
    "core": 0,
    **dict.fromkeys(("catalog", "memory"), 1),
    "planners": 2,
    **dict.fromkeys(("clouds", "reports"), 3),
    **dict.fromkeys(("testing", "service"), 4),
    **dict.fromkeys(("cli", "__main__", ""), 5),
    "mlcd_bench": 6,
}
"""A room may import from the rooms of its own level and from those below."""
BLIND = {frozenset({"clouds", "reports"})}
"""Rooms of one level that do not know of each other."""
MOST_ENTRIES = 12


@cache
def modules() -> dict[str, Path]:
    found = {}
    for package, root in PACKAGES.items():
        for path in root.rglob("*.py"):
            name = ".".join((package, *path.relative_to(root).with_suffix("").parts))
            found[name.removesuffix(".__init__")] = path
    return found


@cache
def imports(path: Path) -> set[str]:
    """The mlcd modules that a file imports at run time, wherever in the file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(inner)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for inner in ast.walk(block)
    }
    known, found = modules(), set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in known else str(node.module))
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] in PACKAGES}
    return found


def room(module: str) -> str:
    """The folder or file at the top of `mlcd`; `mlcd_bench` is one room, above all of them."""
    package, *inside = module.split(".")
    return inside[0] if package == "mlcd" and inside else "" if package == "mlcd" else package


def test_every_room_has_a_place_in_the_house():
    assert {room(name) for name in modules()} <= set(LEVEL)


def test_lower_rooms_never_import_higher_ones_and_clouds_and_reports_are_blind_to_each_other():
    wrong = []
    for name, path in modules().items():
        here = room(name)
        for target in imports(path):
            there = room(target)
            if LEVEL[there] > LEVEL[here] or frozenset({here, there}) in BLIND:
                wrong.append(f"{name} imports {target}")
    assert wrong == []


def test_the_house_can_be_seen_at_a_glance():
    entries = {path.name for path in ROOT.iterdir()} - {"__pycache__"}
    assert len(entries) <= MOST_ENTRIES, sorted(entries)


def test_no_file_imports_itself_in_a_circle():
    graph = {name: imports(path) for name, path in modules().items()}
    state: dict[str, int] = {}

    def visit(name: str, trail: tuple[str, ...]) -> None:
        if state.get(name) == 2:
            return
        assert state.get(name) != 1, " -> ".join((*trail, name))
        state[name] = 1
        for target in sorted(graph.get(name, ())):
            visit(target, (*trail, name))
        state[name] = 2

    for name in graph:
        visit(name, ())


def test_no_two_files_of_tests_have_the_same_name():
    """pytest imports each by its name alone: of two with the same name, whichever comes second is an error."""
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert [name for name, times in names.items() if times > 1] == []


def test_no_file_is_long_and_none_has_a_name_that_says_nothing():
    for name, path in modules().items():
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 330, name
        assert path.stem not in {"utils", "util", "helpers", "manager", "misc", "common"}, name


def test_every_public_name_exists_and_is_documented():
    for name in mlcd.__all__:
        thing = getattr(mlcd, name)
        assert name == "__version__" or (thing.__doc__ or "").strip(), name


@pytest.mark.parametrize("command", [[], ["train"], ["serve"]])
def test_help_imports_nothing_heavy(command):
    script = (
        "import sys, mlcd.cli\n"
        f"try: mlcd.cli.main([*{command}, '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'pydantic', 'yaml', 'rich'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_core_runs_the_demo_without_any_extra(tmp_path):
    """As after a plain `pip install mlcd`: everything that only extras bring is hidden."""
    hidden = ("boto3", "botocore", "moto", "pytest", "hypothesis", "ray", "sky", "lithops", "redis")
    hidden += ("psycopg", "procrastinate")
    script = f"import sys; sys.modules.update(dict.fromkeys({hidden})); import mlcd.cli; mlcd.cli.main(sys.argv[1:])"
    job = ROOT.parent / "examples" / "resnet50.yaml"
    environment = {"MLCD_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    functions = ROOT.parent / "examples" / "functions" / "mobilenet.yaml"
    planned = ["plan", str(functions), "--storage", "vm-ps", "--budget", "5"]
    reported = ["report", "last", "--to", str(tmp_path / "r.html")]
    for arguments in (["train", str(job), "-y"], reported, ["check"], planned):
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments], capture_output=True, text=True, env=environment, check=False
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "r.html").stat().st_size > 10_000


def test_a_simulated_training_imports_little(tmp_path):
    """No other planner, no place where machines are real, no page."""
    job = ROOT.parent / "examples" / "resnet50.yaml"
    script = (
        "import sys, mlcd.cli\n"
        f"try: mlcd.cli.main(['train', {str(job)!r}, '-y'])\n"
        "except SystemExit: pass\n"
        "print(len([name for name in sys.modules if name.partition('.')[0] == 'mlcd']), file=sys.stderr)"
    )
    environment = {"MLCD_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False)
    assert int(done.stderr.split()[-1]) <= 164, done.stderr
