"""Everything that a user can name: commands, options, keys of files, places, methods, routes of the API.

`python tests/docs/surface.py > list`, with PYTHONPATH on any commit: two lists, compared, show what came and went.
Keys, places and methods are those that MLCD itself names when it is given one that it does not know.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from pkgutil import iter_modules
from tempfile import TemporaryDirectory

import click

from mlcd.cli import cli

ROUTES = ("mlcd.service.web.routes", "mlcd.web.routes")
"""Where the routers of the API are, or were."""
INPUTS = Path(__file__).resolve().parents[1] / "core" / "ledger" / "formats" / "inputs"
TUNE = ("tune", "file.yaml", "--trials", "2", "--budget", "1")
SERVE = ("serve", str(INPUTS / "tiny.onnx"), "--shape", "length=1")
NOBODY = "qqqqqqqqqq"
"""A name that nothing has, nor anything like it."""
TRAIN = "run: python train.py\nmlcd: {work: 1M, goal: fastest%s}\n"
FUNCTIONS = (
    "mlcd: {on: functions:simulated, work: {dataset: 1k, epochs: 1}, functions: {model: lr, data: higgs, batch: 9%s}}\n"
)
JOB_FILES = {
    "beside mlcd: ": f"{NOBODY}: 1\n{TRAIN}" % "",
    "": TRAIN % f", {NOBODY}: 1",
    "work.": TRAIN.replace("1M", f"{{{NOBODY}: 1}}") % "",
    "search.": TRAIN % f", search: {{{NOBODY}: 1}}",
    "model.": TRAIN.replace("1M", "{samples: 1M}") % f", model: {{{NOBODY}: 1}}",
    "plan.": TRAIN % f", plan: {{{NOBODY}: 1}}",
    "plan.tensor.": TRAIN % f", plan: {{tensor: {{{NOBODY}: 1, values: 2}}}}",
    "plan.adapter.": TRAIN % f", plan: {{adapter: {{{NOBODY}: 1, values: lora}}}}",
    "elastic.": TRAIN % f", elastic: {{{NOBODY}: 1}}",
    "fingerprint.": TRAIN % f", fingerprint: {{{NOBODY}: 1}}",
    "functions.": FUNCTIONS % f", {NOBODY}: 1",
}
DEEPER = {
    "elastic.price.": (TRAIN % ", elastic: {price: {%s: 1}}", ("cpu", "gb", "base", "per_sample")),
    "functions.tuning.": (FUNCTIONS % ", tuning: {%s: 1}", ("trials", "eta", "epochs_per_stage", "space")),
}
"""Blocks within blocks: a complaint about one names the keys of the block around it, so each key is tried."""
KNOBS = "knobs: {threads: [1, 2]}\nprice: {threads: 0.04}\n"
KNOBS_FILES = {"": f"{NOBODY}: 1\n{KNOBS}", "server.": f"server: {{{NOBODY}: 1}}\n{KNOBS}"}


def surface() -> Iterator[str]:
    """A line for each thing that can be named."""
    yield from commands(cli, "mlcd")
    for block, text in JOB_FILES.items():
        yield from (f"job file {block}{key}" for key in known(text, "plan", "file.yaml"))
    for block, (text, keys) in DEEPER.items():
        yield from (f"job file {block}{key}" for key in keys if is_known(key, text % key))
    for block, text in KNOBS_FILES.items():
        yield from (f"knobs file {block}{key}" for key in known(text, *SERVE, "--knobs", "file.yaml"))
    yield from (f"place {name}" for name in known(TRAIN % "", "plan", "file.yaml", "--on", NOBODY))
    yield from (f"method of train: {name}" for name in known(TRAIN % "", "plan", "file.yaml", "--method", NOBODY))
    yield from (f"method of tune: {name}" for name in known(FUNCTIONS % "", *TUNE, "--method", NOBODY))
    on = ("--on", f"recorded:{INPUTS / 'device'}", "--method", NOBODY)
    yield from (f"method of serve: {name}" for name in known("", "serve", "net_a", *on))
    yield from routes()


def commands(command: click.Command, name: str) -> Iterator[str]:
    """A command, its arguments, its options with their choices, and the commands below it."""
    yield f"command {name}"
    for parameter in command.params:
        names = parameter.opts if isinstance(parameter, click.Option) else [parameter.name or ""]
        for each in (*names, *parameter.secondary_opts):
            yield f"{parameter.param_type_name} {name} {each}"
            if isinstance(parameter.type, click.Choice):
                yield from (f"choice {name} {each} {choice}" for choice in parameter.type.choices)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from commands(found, f"{name} {child}")


def known(text: str, *words: str) -> list[str]:
    """The names in the complaint of a command that was given a name of nothing, in this file or as an option."""
    complaint = complaint_about(text, *words)
    found = re.search(rf"'{NOBODY}': known: (.*)", complaint)
    if found is None:
        raise SystemExit(f"{' '.join(words)}: names nothing that it knows: {complaint!r}")
    added = {planner.name for planner in entry_points(group="mlcd.planners")}  # by other packages: none of ours
    return [name for name in found[1].split(", ") if name not in added]


def is_known(key: str, text: str) -> bool:
    """Whether a job file may have this key; what else is wrong with it does not matter."""
    return f"unknown key '{key}'" not in complaint_about(text, "plan", "file.yaml")


def complaint_about(text: str, *words: str) -> str:
    """What a command says of this file and these words; nothing if it takes them."""
    Path("file.yaml").write_text(text)
    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            cli.main(list(words), prog_name="mlcd", standalone_mode=False)
    except Exception as error:
        return error.format_message() if isinstance(error, click.ClickException) else str(error)
    return ""


def routes() -> Iterator[str]:
    """The routes of the API, by method."""
    package = import_module(next(name for name in ROUTES if _is_there(name)))
    for module in iter_modules(package.__path__, f"{package.__name__}."):
        for route in import_module(module.name).router.routes:
            yield from (f"route {method} {route.path}" for method in route.methods)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a package around it
        return False


if __name__ == "__main__":
    with TemporaryDirectory() as temporary:
        os.chdir(temporary)
        os.environ["MLCD_HOME"] = temporary
        lines = sorted(set(surface()))
        os.chdir("/")
    print("\n".join(lines))
