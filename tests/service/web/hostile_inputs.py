"""What somebody with bad intentions, or none, may send; and the answer that each gets.

docs/reference/security.md has the same list; test_hostile.py holds the two together.
"""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from stage import API, JOB, Stage, Told

Send = Callable[[Stage], Told]
ONE_KB_TOO_MUCH = 257 << 10
SERVE: dict[str, Any] = {"kind": "serve", "options": {"on": "local"}}
REAL = JOB + "  on: local\n"
SKY = JOB + "  on: skypilot\n"
FUNCTIONS = """\
name: own
mlcd:
  work: {dataset: 1000, epochs: 2}
  functions: {model: MODEL, data: higgs, batch: 10, target: loss <= 0.5}
  on: functions:simulated
"""


@dataclass(frozen=True)
class Hostile:
    """A request, the status it is answered with, and the chapter of the list it stands in."""

    name: str
    status: int
    send: Send
    about: str


def get(path: str, who: str | None = "vera", **more: Any) -> Send:
    return lambda s: s.ask("GET", API + path, who, **more)


def post(path: str, body: Any = None, who: str | None = "ron", **more: Any) -> Send:
    return lambda s: s.ask("POST", API + path, who, body, **more)


def job(text: str, **told: Any) -> Send:
    return lambda s: s.submit("ron", text, **told)


def options(**told: Any) -> Send:
    return lambda s: s.submit("ron", options=told)


def raw(body: bytes | list[bytes], path: str = "/runs", kind: str = "application/json", **more: Any) -> Send:
    headers = {"content-type": kind, **more.pop("headers", {})}
    return lambda s: s.ask("POST", API + path, "ron", raw=body, headers=headers, **more)


def model(body: bytes | list[bytes], name: str = "m.onnx", **more: Any) -> Send:
    return raw(body, f"/uploads?name={name}", "application/octet-stream", **more)


def member(**told: Any) -> Send:
    return post("/members", {"name": "eve", "role": "viewer", **told}, "ada")


def bearing(written: str | Callable[[Stage], str], path: str = "/me") -> Send:
    def send(s: Stage) -> Told:
        told = written if isinstance(written, str) else written(s)
        return s.ask("GET", API + path, headers={"authorization": told})

    return send


def carrying(cookie: Callable[[Stage], str] | str) -> Send:
    return lambda s: s.ask("GET", f"{API}/me", headers={"cookie": cookie if isinstance(cookie, str) else cookie(s)})


def riding(headers: dict[str, str], **more: Any) -> Send:
    """A state-changing request of a browser with ron's session."""

    def send(s: Stage) -> Told:
        body = more.get("raw") or json.dumps({"kind": "train", "job": JOB}).encode()
        sent = {"content-type": "application/json", "cookie": s.sign_in("ron"), **headers}
        return s.ask("POST", f"{API}/runs", raw=body, headers=sent)

    return send


@cache
def onnx_model(trick: str = "") -> bytes:
    """A small model that adds; or one with a trick in it."""
    from onnx import TensorProto, helper

    pair = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in ("x", "y")]
    weights = helper.make_tensor("w", TensorProto.FLOAT, [4], [1.0, 2.0, 3.0, 4.0])
    node = helper.make_node("Add", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", pair[:1], pair[1:], [weights])
    told = graph.initializer[0]
    if trick == "external":
        _move_out(told, "/etc/passwd")
    elif trick == "external in a branch":
        inner = helper.make_graph([], "inner", [], pair[1:], [weights])
        _move_out(inner.initializer[0], "../../../../etc/passwd")
        graph.node.append(helper.make_node("If", ["x"], ["z"], then_branch=inner, else_branch=inner))
    elif trick == "huge":
        told.dims[:] = [1 << 40, 1 << 20]
    elif trick == "negative":
        told.dims[:] = [-4]
    elif trick == "no input":
        del graph.input[:]
    elif trick == "endless loop":
        graph.node.insert(0, _loop(helper, TensorProto))
        graph.node[1].input[0] = "x2"
    elif trick in BOMB_OF:
        _add_bomb(graph, helper, *BOMB_OF[trick])
    elif trick == "unknown operator":
        graph.node[0].op_type = "<script>"
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


BOMB_OF: dict[str, tuple[str, dict[str, list[float]]]] = {
    # An operator, and its inputs: what it makes has 900 million numbers, 3.6 GB.
    "ConstantOfShape": ("ConstantOfShape", {"shape": [900_000_000]}),
    "Expand": ("Expand", {"one": [1.0], "shape": [900_000_000]}),
    "Tile": ("Tile", {"one": [1.0], "repeats": [900_000_000]}),
    "Pad": ("Pad", {"one": [1.0], "pads": [0, 900_000_000]}),
    "Resize": ("Resize", {"one": [1.0], "": [], "scales": [9e8]}),
    "a computed size": ("Expand", {"one": [1.0], "product": [30_000, 30_000]}),
}


def _add_bomb(graph: Any, helper: Any, operator: str, given: dict[str, list[float]]) -> None:
    """Add the largest number of a huge constant to what the model answers."""
    for name, values in given.items():
        if not name:
            continue  # an input that is left out
        kind = 1 if isinstance(values[0], float) else 7
        tensors = {"left": values[:1], "right": values[1:]} if name == "product" else {name: values}
        graph.initializer.extend(helper.make_tensor(each, kind, [len(some)], some) for each, some in tensors.items())
    if "product" in given:
        graph.node.append(helper.make_node("Mul", ["left", "right"], ["product"]))
    graph.node.append(helper.make_node(operator, list(given), ["bomb"]))
    graph.node.append(helper.make_node("ReduceMax", ["bomb"], ["most"], keepdims=0))
    graph.node.append(helper.make_node("Add", ["sum", "most"], ["y"]))
    graph.node[0].output[0] = "sum"


def _move_out(tensor: Any, where: str) -> None:
    tensor.ClearField("float_data")
    tensor.ClearField("raw_data")
    tensor.data_location = 1
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", where


def _loop(helper: Any, types: Any) -> Any:
    """No number of rounds and no condition: it goes on for ever."""
    kinds = (("i", types.INT64, []), ("c", types.BOOL, []), ("v", types.FLOAT, ["n", 4]))
    given = [helper.make_tensor_value_info(*each) for each in kinds]
    made = [helper.make_tensor_value_info(name + "2", kind, shape) for name, kind, shape in kinds[1:]]
    nodes = [helper.make_node("Identity", [name], [name + "2"]) for name in ("c", "v")]
    return helper.make_node("Loop", ["", "", "x"], ["x2"], body=helper.make_graph(nodes, "body", given, made))


def nested_protobuf(depth: int) -> bytes:
    """Graphs in attributes of nodes of graphs, each as protobuf writes it: a tag, a length, the rest."""

    def field(tag: int, content: bytes) -> bytes:
        size, length = len(content), b""
        while size > 127:
            length, size = length + bytes([size & 127 | 128]), size >> 7
        return bytes([tag << 3 | 2]) + length + bytes([size]) + content

    graph = b""
    for _ in range(depth):
        graph = field(1, field(5, field(6, graph)))
    return b"\x08\x09" + field(7, graph)


def laughs(levels: int) -> str:
    """The billion laughs: each line names the one before nine times."""
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, levels)]
    return "\n".join(lines)


def owned_run(s: Stage) -> str:
    """A run of rita's that waits."""
    told = s.submit("rita")
    assert told.status == 202, told.body
    return str(told.json()["run"])


def on_ritas(action: str) -> Send:
    return lambda s: s.ask("POST", f"{API}/runs/{owned_run(s)}/{action}", "ron")


def of_ritas(what: str, **headers: str) -> Send:
    return lambda s: s.ask("GET", f"{API}/runs/{owned_run(s)}/{what}", "vera", headers=headers)


def renewed(s: Stage) -> str:
    old = s.state.members.add("temp", "runner") if "temp" not in _names(s) else s.state.members.renew("temp")
    s.state.members.renew("temp")
    return f"Bearer {old}"


def removed(s: Stage) -> str:
    token = s.state.members.add("gone", "runner")
    s.state.members.remove("gone")
    return f"Bearer {token}"


def _names(s: Stage) -> set[str]:
    return {each.name for each in s.state.members.all()}


def signed_out(s: Stage) -> str:
    cookie = s.sign_in("ron")
    told = s.ask("DELETE", f"{API}/session", headers={"cookie": cookie, "x-mlcd": "1"})
    assert told.status == 204, told.body
    return cookie


def expired(s: Stage) -> str:
    cookie = s.sign_in("ron")
    s.age_sessions()
    return cookie


def fixed(s: Stage) -> str:
    """A session's name that an attacker chose, and that the victim's browser had when they signed in."""
    chosen = "mlcd_session=mlcd_" + "a" * 43
    body = {"token": s.tokens["ron"]}
    s.ask(
        "POST",
        f"{API}/session",
        body=body,
        headers={"cookie": chosen, "x-mlcd": "1", "content-type": "application/json"},
    )
    return chosen


def cookie_as_token(s: Stage) -> str:
    return "Bearer " + s.sign_in("ron").partition("=")[2]


PATHS: dict[str, tuple[int, Send]] = {
    "a run named ../../etc/passwd, encoded": (404, get("/runs/..%2F..%2Fetc%2Fpasswd")),
    "the same, encoded twice": (404, get("/runs/..%252F..%252Fetc%252Fpasswd")),
    "the report of a run named ../../ledger.db": (404, get("/runs/..%2f..%2fledger.db/report")),
    "a run named with backslashes": (404, get("/runs/..%5c..%5cwindows%5cwin.ini")),
    "a run named with overlong UTF-8 dots": (404, get("/runs/%c0%ae%c0%ae%c0%af%c0%ae%c0%ae")),
    "a run's name with a NUL in it": (400, get("/runs/a%00.html")),
    "a static file above its folder": (404, lambda s: s.ask("GET", "/assets/..%2f..%2fapp.py")),
    "a static file of the system": (404, lambda s: s.ask("GET", "/assets/%2fetc%2fpasswd")),
    "the logs of a launch named by a path": (400, of_ritas("logs?launch=..%2f..%2fetc")),
    "an export to a path": (400, of_ritas("export?to=..%2f..%2fetc%2fpasswd")),
    "an upload named by a path": (400, post("/runs", {**SERVE, "upload": "../../etc/passwd"})),
    "an upload's hash with a newline behind it": (400, post("/runs", {**SERVE, "upload": "a" * 64 + "\n"})),
    "an upload's hash in capitals": (400, post("/runs", {**SERVE, "upload": "A" * 64})),
    "an upload that nobody sent": (422, post("/runs", {**SERVE, "upload": "0" * 64})),
    "a recording by its absolute path": (422, options(on="recorded:/etc")),
    "a recording by a relative path": (422, options(on="recorded:../../etc")),
    "a recording by a path in the job file": (422, job(JOB + "  on: recorded:/etc\n")),
    "a recorded model by a path": (
        422,
        post("/runs", {**SERVE, "options": {"on": "recorded:/etc"}, "model": "passwd"}),
    ),
    "node types of a file: local:/etc/passwd": (422, options(on="local:/etc/passwd")),
    "a cluster of a file: ray:/etc/passwd": (422, options(on="ray:/etc/passwd")),
    "a cloud named ../../aws": (422, options(on="skypilot:../../aws")),
    "a place that this service does not allow": (422, options(on="ray")),
    "a place that nobody knows": (422, options(on="file:///etc/passwd")),
    "a workdir of the service's machine": (422, job("workdir: /\n" + REAL)),
    "file_mounts of the service's files": (422, job("file_mounts: {/x: /etc/shadow}\n" + REAL)),
    "file_mounts of its home": (422, job("file_mounts: {/x: ~/.ssh}\n" + REAL)),
    "file_mounts of a file:// source": (422, job("file_mounts: {/x: {source: 'file:///etc'}}\n" + REAL)),
    "file_mounts of an internal address": (422, job("file_mounts: {/x: 'https://169.254.169.254/'}\n" + REAL)),
    "a workdir of git, at an internal address": (422, job("workdir: {url: 'https://10.0.0.1/x'}\n" + SKY)),
    "SkyPilot's config, with a command in it": (422, job("config: {aws: {ssh_proxy_command: sh}}\n" + REAL)),
    "the same, by another door": (422, job("resources: {_cluster_config_overrides: {docker: {}}}\n" + SKY)),
    "a bucket that is to be deleted": (422, job("file_mounts: {/x: {name: b, _force_delete: true}}\n" + SKY)),
    "the service's own secrets as those of a job": (422, job("secrets: {MLCD_DATABASE_URL: null}\n" + SKY)),
    "a variable of the service's own environment": (422, job("envs: {PGPASSWORD: null}\n" + REAL)),
    "a class of the service's own files as a model": (
        422,
        job(FUNCTIONS.replace("MODEL", "'os:system'"), kind="tune", options={"trials": 4}),
    ),
    "a knowledge base by a path": (
        422,
        post("/runs", {**SERVE, "options": {"knowledge": "../../etc"}, "upload": "0" * 64}),
    ),
    "an option that names a file: knobs": (422, options(knobs="/etc/passwd")),
}
BOMBS: dict[str, tuple[int, Send]] = {
    "YAML: the billion laughs": (422, job(laughs(30))),
    "YAML: a long text, named 9,000 times": (422, job(f"envs: {{a: &a {'a' * 20_000}, b: [{'*a, ' * 9_000}]}}\n{JOB}")),
    "YAML: 60,000 brackets": (422, job("[" * 60_000)),
    "YAML: mappings, one inside the other": (422, job("".join(" " * i + "a:\n" for i in range(300)))),
    "YAML: an alias inside what it stands for": (422, job("name: &a [*a]\n" + JOB)),
    "YAML: a Python object": (422, job("name: !!python/object/apply:os.system [id]\n" + JOB[13:])),
    "YAML: a key twice": (422, job("name: a\n" + JOB)),
    "YAML: a number of 50,000 digits": (422, job(JOB.replace("1M", "9" * 50_000))),
    "YAML: bytes": (422, job(JOB + "  report: !!binary AAAA\n")),
    "YAML: a control character": (422, job(JOB + "# \x07\n")),
    "a job file of nothing": (422, job("")),
    "a broken regular expression": (422, job(JOB + "  report: '(?P<step>['\n")),
    "gzip: a body that unpacks to 100 MB": (
        415,
        lambda s: raw(gzip.compress(bytes(1 << 20)), headers={"content-encoding": "gzip"})(s),
    ),
    "ONNX: random bytes": (422, model(bytes(range(256)) * 40)),
    "ONNX: an empty file": (422, model(b"")),
    "ONNX: cut short": (422, lambda s: model(onnx_model()[:-20])(s)),
    "ONNX: a pickle": (422, model(pickle.dumps({"a": 1}))),
    "ONNX: a zip file": (422, model(b"PK\x03\x04" + bytes(200))),
    "ONNX: an HTML page": (422, model(b"<html><script>alert(1)</script></html>")),
    "ONNX: weights in /etc/passwd": (422, lambda s: model(onnx_model("external"))(s)),
    "ONNX: weights elsewhere, in a branch": (422, lambda s: model(onnx_model("external in a branch"))(s)),
    "ONNX: a tensor of 2**60 numbers": (422, lambda s: model(onnx_model("huge"))(s)),
    "ONNX: a tensor of -4 numbers": (422, lambda s: model(onnx_model("negative"))(s)),
    "ONNX: no input": (422, lambda s: model(onnx_model("no input"))(s)),
    "ONNX: a constant of 900 million numbers": (422, lambda s: model(onnx_model("ConstantOfShape"))(s)),
    "ONNX: one number, expanded to 900 million": (422, lambda s: model(onnx_model("Expand"))(s)),
    "ONNX: one number, tiled to 900 million": (422, lambda s: model(onnx_model("Tile"))(s)),
    "ONNX: one number, padded to 900 million": (422, lambda s: model(onnx_model("Pad"))(s)),
    "ONNX: one number, resized to 900 million": (422, lambda s: model(onnx_model("Resize"))(s)),
    "ONNX: graphs in graphs, 300 deep": (422, model(nested_protobuf(300))),
    "ONNX: a field that says it has 2**63 bytes": (422, model(b"\x08\x09\x3a" + b"\xff" * 8 + b"\x7f")),
    "an upload that says it is too large": (413, model(b"x", headers={"content-length": str(2 << 20)})),
    "an upload that is too large and does not say so": (413, model([bytes(1 << 18)] * 5)),
    "an upload that ends in the middle": (400, model([b"\x08\x09"], cut=True)),
    "an upload as a form": (415, raw(b"x", "/uploads", "multipart/form-data; boundary=x")),
}
BODIES: dict[str, tuple[int, Send]] = {
    "a body that says it is too large": (413, raw(b"{}", headers={"content-length": str(ONE_KB_TOO_MUCH)})),
    "a body that is too large and does not say so": (413, raw([b" " * 1024] * 257)),
    "a length that is no number": (400, raw(b"{}", headers={"content-length": "abc"})),
    "a negative length": (400, raw(b"{}", headers={"content-length": "-1"})),
    "a body that ends in the middle": (400, raw([b'{"kind": '], cut=True)),
    "a form": (415, raw(b"kind=train", kind="application/x-www-form-urlencoded")),
    "JSON as text/plain": (415, raw(b'{"kind": "train"}', kind="text/plain")),
    "JSON without a type": (415, raw(b'{"kind": "train"}', kind="")),
    "XML with an entity": (415, raw(b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>', kind="text/xml")),
    "what is not JSON": (400, raw(b"{kind: train}")),
    "no body": (400, raw(b"")),
    "a list for an object": (400, raw(b"[]")),
    "null for an object": (400, raw(b"null")),
    "JSON in UTF-16": (400, raw('{"kind": "train"}'.encode("utf-16"))),
    "bytes that are not UTF-8": (400, raw(b'{"kind": "\xff\xfe"}')),
    "60,000 brackets of JSON": (400, raw(b"[" * 60_000)),
    "objects 40 deep": (400, raw(b'{"options":' * 40 + b"1" + b"}" * 40)),
    "a key twice in JSON": (400, raw(b'{"kind": "train", "kind": "serve", "job": ""}')),
    "NaN for money": (400, raw(b'{"budget_usd": NaN}', "/members")),
    "Infinity for money": (400, raw(b'{"budget_usd": Infinity}', "/members")),
    "1e999 for money": (400, raw(b'{"budget_usd": 1e999}', "/members")),
    "a number of 5,000 digits": (400, raw(b'{"budget_usd": ' + b"9" * 5_000 + b"}", "/members")),
    "a budget below zero": (400, member(budget_usd=-1)),
    "true for money": (400, member(budget_usd=True)),
    "a text for money": (400, member(budget_usd="1e3")),
    "null for a role": (400, member(role=None)),
    "a role that there is not": (400, member(role="root")),
    "a key that nobody knows": (400, member(is_admin=True)),
    "a kind that there is not": (400, post("/runs", {"kind": "train; ls", "job": JOB})),
    "a list for a kind": (400, post("/runs", {"kind": ["train"], "job": JOB})),
    "a text for true": (400, post("/runs", {"kind": "train", "job": JOB, "launch": "yes"})),
    "an object inside an option": (400, options(budget={"$gt": {"a": 1}})),
    "an option's name of 5,000 letters": (400, lambda s: s.submit("ron", options={"a" * 5_000: 1})),
    "half a surrogate pair": (400, raw(b'{"kind": "train", "job": "\\ud800"}')),
    "a NUL in a text": (400, post("/runs", {"kind": "train", "job": "a\0b"})),
    "'nan' for a budget": (422, options(budget="nan")),
    "a budget of -5": (422, options(budget="-5")),
    "a budget of 1e308": (422, options(budget=1e308)),
    "a deadline of 1e300 days": (422, options(deadline="1e300d")),
    "a budget of 1e400": (422, options(budget="1e400")),
    "a deadline of -1h": (422, options(deadline="-1h")),
    "nodes 1..10**18": (422, options(nodes="1..1000000000000000000")),
    "nodes 8..1": (422, options(nodes="8..1")),
    "a seed of -1": (422, options(seed=-1)),
    "half a node": (422, options(parallel=0.5)),
    "an option that there is not": (422, options(shell="sh")),
    "1,000 values of an option": (422, options(instances=["a"] * 1_000)),
    "serve, and a job file": (422, post("/runs", {**SERVE, "job": JOB, "upload": "0" * 64})),
    "train, and an upload": (422, post("/runs", {"kind": "train", "job": JOB, "upload": "0" * 64})),
    "a limit of -1": (400, get("/runs?limit=-1")),
    "a limit of 1e99": (400, get("/runs?limit=1e99")),
    "an offset of 30 digits": (400, get("/runs?offset=" + "9" * 30)),
    "entries after -1": (400, of_ritas("entries?after=-1")),
    "events after 30 digits": (400, of_ritas("events?after=" + "9" * 30)),
    "an audit before NaN": (400, get("/audit?before=NaN", "ada")),
    "a query of 10,000 letters": (400, get("/runs?text=" + "a" * 10_000)),
    "headers of 40,000 letters": (400, get("/runs", headers={"x-filler": "a" * 40_000})),
    "a Last-Event-ID of 40 digits": (400, get("/events", headers={"last-event-id": "9" * 40})),
    "a Last-Event-ID of SQL": (400, of_ritas("events", **{"last-event-id": "1; DELETE FROM entries WHERE 1=1; --"})),
    "a NUL in a query": (400, get("/runs?text=a%00b")),
}
INJECTED: dict[str, tuple[int, Send]] = {
    "SQL as a run's name": (404, get("/runs/x';DROP%20TABLE%20entries;--")),
    "SQL as a member's name": (422, member(name="x'; DROP TABLE members; --")),
    "SQL as a member to change": (
        404,
        lambda s: s.ask("PATCH", f"{API}/members/x'%20OR%20'1'='1", "ada", {"role": "admin"}),
    ),
    "SQL as an order": (400, get("/runs?order=started;DROP%20TABLE%20runs")),
    "SQL as a token": (401, bearing("Bearer ' OR '1'='1")),
    "HTML as a member's name": (422, member(name="<img src=x onerror=alert(1)>")),
    "HTML as a team": (422, member(team="<script>alert(1)</script>")),
    "a shell's command as an instance type": (
        422,
        post("/checks", {"kind": "train", "job": JOB, "options": {"instances": ["$(touch pwned)"]}}),
    ),
    "a shell's command as a method": (422, options(method="; touch pwned")),
    "a shell's command as a place": (422, options(on="simulated; touch pwned")),
    "a line break in a job's name": (422, job(JOB.replace("digits", '"a\\nERROR: forged"'))),
    "a line break in a run's name": (404, get("/runs/a%0d%0aERROR:%20forged")),
    "a header in an upload's name": (422, model(b"x", "a%0d%0aSet-Cookie:%20a=b")),
    "a path in an upload's name": (422, model(b"x", "..%2f..%2f..%2ftmp%2fpwned.onnx")),
    "a forged line of a log in an instance type": (
        422,
        job(JOB.replace("g4dn.xlarge", '"x\\nmlcd: all is paid"')),
    ),
    "an escape sequence in an instance type": (422, job(JOB.replace("g4dn.xlarge", '"x\\e[2J"'))),
    "an escape sequence in a label": (422, job('resources: {labels: {a: "\\e]0;x\\a"}}\n' + JOB)),
    "an escape sequence in a job's name": (422, job(JOB.replace("digits", '"\\e[2J"'))),
    "a format string as a member's name": (422, member(name="%s%n{0.__class__}")),
    "a team of quotes": (422, lambda s: s.ask("PUT", f"{API}/teams/%22%27", "ada", {"budget_usd": 1.0})),
}
TOKENS: dict[str, tuple[int, Send]] = {
    "no token": (401, get("/me", None)),
    "a forged token": (401, bearing("Bearer mlcd_" + "A" * 43)),
    "a token without its end": (401, bearing(lambda s: f"Bearer {s.tokens['ron'][:-1]}")),
    "a token with another end": (401, bearing(lambda s: f"Bearer {s.tokens['ron']}x")),
    "a token in small letters": (401, bearing(lambda s: f"Bearer {s.tokens['ron'].lower()}")),
    "an empty token": (401, bearing("Bearer ")),
    "a password": (401, bearing("Basic YWRtaW46YWRtaW4=")),
    "a token of 10,000 letters": (401, bearing("Bearer " + "a" * 10_000)),
    "a token that is not ASCII": (401, bearing("Bearer mlcd_\xe9\xe8")),
    "an unsigned JSON web token": (401, bearing("Bearer eyJhbGciOiJub25lIn0.eyJyb2xlIjoiYWRtaW4ifQ.")),
    "a token in the address": (401, lambda s: s.ask("GET", f"{API}/me?token={s.tokens['ada']}")),
    "a token's hash for a token": (401, bearing(lambda s: f"Bearer {_hash_of(s.tokens['ada'])}")),
    "a token that was replaced": (401, bearing(renewed)),
    "a token of somebody who left": (401, bearing(removed)),
    "a forged session": (401, carrying("mlcd_session=mlcd_" + "A" * 43)),
    "a session that was signed out of": (401, carrying(signed_out)),
    "a session that has expired": (401, carrying(expired)),
    "a session that an attacker chose beforehand": (401, carrying(fixed)),
    "a session's cookie as a token": (401, bearing(cookie_as_token)),
    "a token as a session's cookie": (401, carrying(lambda s: f"mlcd_session={s.tokens['ada']}")),
    "a wrong token with a good session": (
        401,
        lambda s: s.ask("GET", f"{API}/me", headers={"authorization": "Bearer x", "cookie": s.sign_in("ron")}),
    ),
    "signing in with a wrong token": (
        401,
        post("/session", {"token": "mlcd_" + "A" * 43}, None, headers={"x-mlcd": "1"}),
    ),
    "signing in with nothing": (400, post("/session", {"token": ""}, None, headers={"x-mlcd": "1"})),
}


def _hash_of(token: str) -> str:
    import hashlib

    return hashlib.sha256(token.encode()).hexdigest()


SITES: dict[str, tuple[int, Send]] = {
    "a form of another site, with the session": (
        403,
        riding({"content-type": "application/x-www-form-urlencoded"}, raw=b"kind=train"),
    ),
    "a request with the session and without X-MLCD": (403, riding({})),
    "the same, with an empty X-MLCD": (403, riding({"x-mlcd": "0"})),
    "a page of another site": (403, riding({"x-mlcd": "1", "origin": "https://evil.example"})),
    "a page without an origin": (403, riding({"x-mlcd": "1", "origin": "null"})),
    "a page of localhost.evil.example": (403, riding({"x-mlcd": "1", "origin": "http://localhost.evil.example"})),
    "a page of another port of this machine": (403, riding({"x-mlcd": "1", "origin": "http://localhost:9999"})),
    "a page of ours that came by another scheme": (403, riding({"x-mlcd": "1", "origin": "https://localhost"})),
    "an origin that is no address": (403, riding({"x-mlcd": "1", "origin": "http://["})),
    "a page that the browser calls cross-site": (403, riding({"x-mlcd": "1", "sec-fetch-site": "cross-site"})),
    "signing somebody in from another site": (403, lambda s: post("/session", {"token": s.tokens["ron"]}, None)(s)),
    "a name that somebody else's DNS points here": (403, get("/me", host="evil.example")),
    "the same, with our port": (403, get("/me", host="evil.example:8421")),
    "no Host": (400, get("/me", host=None)),
    "a Host with a user in it": (400, get("/me", host="localhost@evil.example")),
    "a Host with a path in it": (400, get("/me", host="localhost/evil")),
    "a preflight of another site": (
        401,
        lambda s: s.ask("OPTIONS", f"{API}/runs", headers={"origin": "https://evil.example"}),
    ),
    "another method in a header": (
        405,
        lambda s: s.ask("POST", f"{API}/members/ron", "ada", headers={"x-http-method-override": "DELETE"}),
    ),
    "TRACE": (405, lambda s: s.ask("TRACE", f"{API}/me", "ada")),
    "a method that there is not": (405, lambda s: s.ask("PWN", f"{API}/me", "ada")),
}
ROLES: dict[str, tuple[int, Send]] = {
    "a viewer submits": (403, lambda s: s.submit("vera")),
    "a viewer checks a job": (403, post("/checks", {"kind": "train", "job": JOB}, "vera")),
    "a viewer uploads": (
        403,
        lambda s: s.ask(
            "POST", f"{API}/uploads", "vera", raw=b"x", headers={"content-type": "application/octet-stream"}
        ),
    ),
    "a viewer stops a run": (403, lambda s: s.ask("POST", f"{API}/runs/{owned_run(s)}/stop", "vera")),
    "a viewer reads the audit log": (403, get("/audit")),
    "a runner lists the members": (403, get("/members", "ron")),
    "a runner adds an admin": (403, post("/members", {"name": "eve", "role": "admin"})),
    "a runner makes themself an admin": (
        403,
        lambda s: s.ask("PATCH", f"{API}/members/ron", "ron", {"role": "admin"}),
    ),
    "a runner lifts their own limit": (
        403,
        lambda s: s.ask("PATCH", f"{API}/members/ron", "ron", {"budget_usd": None}),
    ),
    "a runner asks for the admin's token": (403, post("/members/ada/token")),
    "a runner lifts the team's limit": (403, lambda s: s.ask("PUT", f"{API}/teams/lab", "ron", {"budget_usd": None})),
    "a runner stops another's run": (403, on_ritas("stop")),
    "a runner takes another's run down": (403, on_ritas("down")),
    "a runner goes on with another's run": (403, on_ritas("resume")),
    "a runner launches another's run": (403, on_ritas("launch")),
    "the last admin leaves": (409, lambda s: s.ask("DELETE", f"{API}/members/ada", "ada")),
    "stopping a run that there is not": (404, post("/runs/none-1/stop")),
}
BREAKING = {"YAML: a long text, named 9,000 times"}
"""What no parser refuses by itself: the limits of the child do."""
CHAPTERS = {
    "Paths": PATHS,
    "Bombs": BOMBS,
    "Bodies and numbers": BODIES,
    "Injection": INJECTED,
    "Tokens and sessions": TOKENS,
    "Other sites": SITES,
    "Roles": ROLES,
}


def hostile_inputs() -> Iterator[Hostile]:
    for about, inputs in CHAPTERS.items():
        for name, (status, send) in inputs.items():
            yield Hostile(name, status, send, about)


def listed() -> str:
    """The list, as the documentation has it."""
    lines = []
    for about, inputs in CHAPTERS.items():
        lines += [f"**{about}**", "", "| sent | answer |", "|---|---|"]
        lines += [
            f"| {name.replace('|', chr(92) + '|').replace('<', '&lt;')} | {status} |"
            for name, (status, _) in inputs.items()
        ]
        lines.append("")
    return "\n".join(lines)


DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "security.md"
