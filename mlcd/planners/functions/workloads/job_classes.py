"""A job's own classes, as `module:Class` in the folder of its job file.

The module is loaded from its file under a unique name: the search path stays unchanged, and two jobs may both have a
`net.py`. While it is loaded, it can import modules beside it.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from mlcd.core.errors import UnknownName, UserError


def find_class(what: str, name: str, folder: str) -> Any:
    """The class of a name such as `net:Net`; `what`: for error messages."""
    module_name, _, class_name = name.partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), class_name)):
        raise UserError(f"{what} '{name}': write it as module:Class, such as net:Net for class Net in net.py")
    path = Path(folder or ".").resolve().joinpath(*module_name.split(".")).with_suffix(".py")
    if not path.is_file():
        raise UserError(f"{what} '{name}': there is no {path}")
    try:
        module = _module(path, path.stat().st_mtime_ns)
    except Exception as error:  # the user's own code may raise anything
        words = " ".join(str(error).split())
        raise UserError(f"{what} '{name}': {path} cannot be imported: {type(error).__name__}: {words}") from error
    if not isinstance(getattr(module, class_name, None), type):
        own = [each for each, thing in vars(module).items() if isinstance(thing, type)]
        raise UnknownName(f"class in {path}", class_name, own)
    return getattr(module, class_name)


@cache
def _module(path: Path, changed_ns: int) -> ModuleType:
    """Load a file once per version, so that a class is the same object in every call."""
    name = f"mlcd_job_{hashlib.sha256(f'{path}@{changed_ns}'.encode()).hexdigest()[:16]}_{path.stem}"
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module there
    try:
        with _on_search_path(str(path.parent)):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


@contextmanager
def _on_search_path(folder: str) -> Iterator[None]:
    before = list(sys.path)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path[:] = before
