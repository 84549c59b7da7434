"""How an engine is started for a trial: its command, its environment variables and its address."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mlcd.clouds.engines import ENGINES
from mlcd.clouds.engines.kind import EngineKind
from mlcd.clouds.servers.settings import server_cores
from mlcd.core.errors import UnknownName, UserError
from mlcd.planners.serve.llm.flags import command_line, filled_in
from mlcd.planners.serve.llm.nouns import Engine
from mlcd.planners.serve.nouns import Knob

PASSED_ON = ("HF_HUB_OFFLINE", "HF_TOKEN", "HF_ENDPOINT", "VLLM_CACHE_ROOT")
"""Environment variables that are passed on, so that an engine finds a model by its name."""
VERSION_TIMEOUT_S = 30.0
HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Start:
    """`command`: empty for an engine that is already running. `url`: its address."""

    url: str
    command: str = ""
    environment: Mapping[str, str] | None = None


def start_of(engine: Engine, model: str, knobs: Mapping[str, Knob]) -> Start:
    """How to start an engine with these knobs, on a free port."""
    if engine.runs_already:
        return Start(engine.url)
    kind, port = kind_of(engine), _free_port()
    url = engine.url or f"http://{HOST}:{port}"
    cores = sorted(server_cores(int(knobs["threads"]))) if "threads" in knobs else None
    values = {**knobs, "model": model, "host": HOST, "port": port}
    line = command_line(engine.name, model, knobs, start=engine.command, host=HOST, port=port, cores=cores)
    command = shlex.join(line.arguments)
    if engine.command:  # verbatim, since it may contain shell syntax
        own = filled_in(engine.command, values)
        command = " ".join((own, *map(shlex.quote, line.arguments[len(shlex.split(own)) :])))
    if cores is not None and shutil.which("taskset"):  # pin the whole process, since the cores are what is paid for
        command = f"taskset -c {','.join(map(str, cores))} sh -c {shlex.quote(command)}"
    names = {f"MLCD_KNOB_{name.upper()}": str(value) for name, value in knobs.items()}
    always = kind.variables if kind is not None else {}
    return Start(url, command, {**_to_find_models(model), **names, **always, **line.environment})


def kind_of(engine: Engine) -> EngineKind | None:
    """The engine's kind by its name; None if only a command or an address is given."""
    if engine.name and engine.name not in ENGINES:
        raise UnknownName("engine", engine.name, ENGINES)
    return ENGINES.get(engine.name)


def installed_version(kind: EngineKind, command: str = "") -> str:
    """The installed version of an engine; UserError with a hint if it is not installed.

    Read from the package metadata of the program's Python, since asking the engine itself takes many seconds.
    """
    program = next((each for each in shlex.split(command) if Path(each).name == kind.program), kind.program)
    found = shutil.which(program)
    if found is None and (not command or program != kind.program):
        raise UserError(f"{kind.name}: '{program}' is not installed: {kind.install}; or name another engine")
    if found is None:
        return ""  # the user's own command, such as one that starts a container
    with open(found, "rb") as file:
        interpreter = file.readline().decode(errors="replace").strip()
    if not interpreter.startswith("#!") or "python" not in interpreter:
        return ""
    ask = f"from importlib.metadata import version; print(version({kind.package!r}))"
    ask_version = [*shlex.split(interpreter[2:]), "-c", ask]
    done = subprocess.run(ask_version, check=False, capture_output=True, text=True, timeout=VERSION_TIMEOUT_S)
    return done.stdout.strip()


def _to_find_models(model: str) -> dict[str, str]:
    """Variables by which the engine finds the model. A local folder is complete, so downloads are disabled."""
    passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {"HF_HUB_OFFLINE": "1", **passed} if Path(model).exists() else passed


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
