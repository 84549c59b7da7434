"""MLCD's own regular expressions take linear time on any text, as outputs, files and fields may be hostile."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import mlcd
from mlcd.planners.serve.operators.onnx_session import MOST_READ

ROOT = Path(mlcd.__file__).parent
LENGTH, SUSPECT_S, MOST, TRIES = 20_000, 0.25, 200, 3
KNOWN = re.compile("a*b"), "a" * 2_000
"""A search of 2,000^2 / 2 steps. `MOST` of them are half a second of CPU, and more where other processes slow both."""
BOUNDED = {"operators/onnx_session.py": MOST_READ}
"""Characters of a text that are looked at, in files that cut it first."""
CALLS = {"compile", "match", "search", "fullmatch", "finditer", "findall", "sub", "split"}
PUMPED = [
    *("a", " ", "1", ".", "-", "/", ":", ",", "'", "(", "{", "[", "\n", "\x1b[", "a: ", "a.", "a ", "1 ", "1_", "1,"),
    *("a-", "a=1 ", "ready: ", "E0000 ", "[a]:\n", "No such file or directory: '", 'In Node, ("a", b,'),
    *("('HANDLER', '", "pid=1 ", "@mlcd t=1", "/onnxruntime/a:1 "),
]
AROUND = [("", ""), ("a", "!"), ("1", "!"), ("1 ", "x\n!"), ("(", "!"), ("a >", "!"), ("E0000 torch/distributed", "")]


def literals() -> Iterator[tuple[str, str, int]]:
    """Where each pattern is written that `re` is given, itself, and how it is used."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
                continue
            if getattr(node.func.value, "id", "") != "re" or node.func.attr not in CALLS:
                continue
            written = _text(node.args[0], path)
            flags = re.MULTILINE if any("MULTILINE" in ast.dump(each) for each in node.args[1:]) else 0
            if written is not None:
                where = f"{path.relative_to(ROOT)}:{node.lineno}"
                yield where, f"(?:{written})\\Z" if node.func.attr == "fullmatch" else written, flags


def _text(node: ast.expr, path: Path) -> str | None:
    """The pattern, with the constants of its module filled in; None of one that is put together at run time."""
    names = ".".join(("mlcd", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    try:
        written = eval(compile(ast.Expression(node), str(path), "eval"), vars(import_module(names)))
    except (NameError, ImportError):
        return None
    return written if isinstance(written, str) else None


def test_a_pattern_takes_no_longer_than_the_text_is_long() -> None:
    patterns = list(literals())  # here, not at collection: every file of MLCD is parsed and imported for them
    assert len(patterns) > 40
    for where, written, flags in patterns:
        is_linear(where, written, flags)


def is_linear(where: str, written: str, flags: int) -> None:
    pattern, length = re.compile(written, flags), BOUNDED.get(where.partition(":")[0], LENGTH)
    for pumped in PUMPED:
        for before, after in AROUND if len(pumped) == 1 else AROUND[:1]:
            text = before + (pumped * length)[:length] + after
            look = pattern.match if written.endswith(")\\Z") else pattern.search
            if seconds(look, text) > SUSPECT_S:
                took = min(seconds(look, text) / seconds(KNOWN[0].search, KNOWN[1]) for _ in range(TRIES))
                assert took < MOST, f"{where}: {took:.0f} units on {before!r} + {pumped!r} * n + {after!r}"


def seconds(look: Callable[[str], object], text: str) -> float:
    """Of CPU."""
    began_s = time.process_time()
    look(text)
    return time.process_time() - began_s
