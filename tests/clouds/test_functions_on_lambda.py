"""Functions on AWS Lambda, through Lithops' own backend: their code, their bill, throttling.

The whole way is played in a cloud in a box: docs/howto/cloud-in-a-box.md.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import zipfile
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest

from mlcd.clouds.functions.bucket import Models
from mlcd.clouds.functions.call import FINISH_S, CloudCall, Requests, record_deadline
from mlcd.clouds.functions.code_package import LARGEST_MB, pack, store_code
from mlcd.clouds.functions.groups import Durations, Group, Prewarmed, Workers
from mlcd.clouds.functions.lithops_functions import LithopsFunctions
from mlcd.clouds.functions.lithops_internals import Answer, Deployed
from mlcd.clouds.functions.meter import Bill, Meter
from mlcd.clouds.functions.orders import Orders
from mlcd.clouds.functions.worker import NOT_NEEDED, train_epoch
from mlcd.clouds.local.teardown import started_at
from mlcd.core.backend import Launch, Purpose
from mlcd.core.clock import WallClock
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.errors import UserError
from mlcd.planners.functions.nouns import Allocation
from mlcd.planners.functions.workload import StorageRate, Tariff

TARIFF = Tariff(1e-5, 1e-7, (StorageRate("s3", 1.0),), usd_per_put=1e-3, usd_per_get=1e-4)
NET = """
import numpy as np
from beside import CLASSES


class Data:
    shape, classes = (3,), CLASSES

    def rows(self, first, last, seed):
        return np.zeros((last - first, 3), np.float32), np.zeros(last - first, np.int32)


class Net:
    def __init__(self, shape, classes):
        self.size = shape[0]

    def initial(self, seed):
        return np.zeros(3, np.float32)

    def gradient(self, parameters, features, labels):
        return 0.5, np.ones(3, np.float32)

    def loss(self, parameters, features, labels):
        return 0.5
"""
FUNCTION = """
# As in a function: nothing of MLCD is installed, and of other packages only what Lithops' layer and AWS have.
import pickle, sys
sys.path += {packages}
has = {{"numpy", "cloudpickle", "boto3", "botocore", "s3transfer", "dateutil", "jmespath", "urllib3", "six", "redis"}}
class Nothing:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in has | {{"mlcd", "mlcd_bench", "lithops", "beside"}} | sys.stdlib_module_names:
            raise ModuleNotFoundError(f"No module named '{{name}}'")
sys.meta_path.insert(0, Nothing())
class Bucket:
    bucket = "b"
    def get_object(self, bucket, key, extra_get_args=None):
        made = {{"data/features": bytes(4 * 12), "data/labels": bytes(4 * 4)}}
        return made[key] if key in made else open(key, "rb").read()
run, order = pickle.load(open({pickled!r}, "rb"))
print(run(order, Bucket()))
import mlcd.planners.functions.storages.aws, mlcd_bench.workloads.linear, mlcd_bench.workloads.generated
"""


def names(packed: bytes) -> list[str]:
    return zipfile.ZipFile(BytesIO(packed)).namelist()


def test_code_is_stored_once_and_again_after_a_change(tmp_path):
    objects: dict[str, bytes] = {}
    bucket = SimpleNamespace(
        bucket="b",
        list_keys=lambda bucket, prefix: [key for key in objects if key.startswith(prefix)],
        put_object=lambda bucket, key, data: objects.update({key: data}),
    )
    (tmp_path / "net.py").write_text(NET)
    first = store_code(bucket, str(tmp_path))
    objects[first] = b"as it was stored"
    assert store_code(bucket, str(tmp_path)) == first
    assert objects[first] == b"as it was stored"
    (tmp_path / "net.py").write_text(NET + "#")
    assert store_code(bucket, str(tmp_path)) != first


def test_only_python_files_of_the_jobs_folder_are_sent(tmp_path):
    for name in ("net.py", "layers/conv.py", ".venv/lib/x.py", "node_modules/x.py", "data.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert [each for each in names(pack(str(tmp_path))) if each.startswith("job/")] == [
        "job/net.py",
        "job/layers/conv.py",
    ]
    assert not [each for each in names(pack("")) if each.startswith("job/")]


def test_a_folder_with_too_much_code_is_refused(tmp_path):
    with (tmp_path / "huge.py").open("wb") as file:
        file.truncate(LARGEST_MB * 1_000_000 + 1)
    with pytest.raises(UserError, match="into their own folder"):
        pack(str(tmp_path))


@pytest.mark.live
@pytest.mark.skipif(find_spec("lithops") is None, reason="lithops is missing: pip install 'mlcd[lithops]'")
def test_a_function_without_mlcd_installed_runs_a_jobs_own_code(tmp_path):
    import cloudpickle

    from mlcd.clouds.functions.bootstrap import fetch_code_and_run
    from mlcd.clouds.functions.lithops_internals import pickled_by_value

    job = tmp_path / "job"
    job.mkdir()
    (job / "net.py").write_text(NET)
    (job / "beside.py").write_text("CLASSES = 2\n")
    code = tmp_path / tmp_path.name
    code.write_bytes(pack(str(job)))
    order = {
        "code": str(code), "work": "train_alone", "model": "net:Net", "data": "net:Data", "folder": str(job),
        "hyperparameters": {}, "stored": {"key": "data", "shape": [3]}, "samples": 4, "batch": 4, "functions": 1,
        "rank": 0, "seed": 0, "from": None, "share": None, "until": 1e12, "epochs": 1, "iterations": 1, "fault": None,
        "learning_rate": 0.1, "evaluate_every": 1,
    }  # fmt: skip
    (tmp_path / "pickled").write_bytes(
        pickle.dumps((_as_loaded(cloudpickle.dumps(pickled_by_value(fetch_code_and_run))), order))
    )
    (job / "net.py").unlink()  # a function sees nothing of this machine
    packages = [each for each in sys.path if each.endswith("site-packages")]
    program = FUNCTION.format(packages=packages, pickled=str(tmp_path / "pickled"))
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
    assert "'epochs': [(0.5" in done.stdout, done.stderr + done.stdout
    assert "'process_at'" in done.stdout
    assert done.returncode == 0, done.stderr


class _AsLoaded:
    """Unpickles to what these bytes hold."""

    def __init__(self, pickled: bytes) -> None:
        self.pickled = pickled

    def __reduce__(self):
        return pickle.loads, (self.pickled,)


def _as_loaded(pickled: bytes) -> _AsLoaded:
    return _AsLoaded(pickled)


def call(until: float = 0.0, deployed: tuple[Deployed, ...] = (), asked: Requests | None = None) -> CloudCall:
    running = SimpleNamespace(ready=False, success=False, done=False)
    return CloudCall([running], None, until, deployed, lambda: (0, 0), asked or Requests())


def answered(process_at: float) -> Answer:
    report = {"process_at": process_at, "up_at": 108.0, "ended_at": 109.0, "requests": 7, "puts": 3}
    return Answer(report, "", 107.0, 110.0, submitted_at=100.0)


@pytest.mark.parametrize(("process_at", "used_s"), [(50.0, 10.0), (104.0, 6.0)], ids=["warm", "cold"])
def test_a_function_is_billed_from_its_call_or_from_the_start_of_its_process(process_at, used_s):
    assert call().billed_s(0, answered(process_at), 200.0) == pytest.approx(used_s + FINISH_S)


def test_a_function_that_died_is_billed_from_its_call():
    died = Answer(None, "", 107.0, 110.0, submitted_at=100.0)
    assert call().billed_s(0, died, 200.0) == pytest.approx(10.0 + FINISH_S)


def test_a_function_without_an_answer_is_billed_until_its_deadline():
    running = call(until=1e12)
    assert running.billed_s(0, None, 1e10) > 9e11
    assert running.billed_s(0, None, 1e10, abandoned=False) < 1e10


def test_deployment_calls_and_bucket_requests_are_billed():
    bill = Bill()
    bill.add(call(0.0, (Deployed(512, 20.0), Deployed(2_048, 1.0)), Requests(5, 10)), [answered(104.0)], 200.0)
    assert (bill.calls, bill.deployed_gb_s, bill.bucket) == (3, 12.0, Requests(5, 10))
    meter = Meter(TARIFF, Allocation(1, 1_024, "s3"), 10)
    functions_usd = 3e-7 + 1e-5 * (12.0 + 6.0 + FINISH_S)
    assert meter.functions_usd(bill) == pytest.approx(functions_usd + 5e-3 + 10e-4)
    # The storage, by what was asked of it: the mean price is for plans.
    assert meter.usd(bill, 1.0) == pytest.approx(meter.functions_usd(bill) + 3e-3 + 4e-4)


def test_requests_are_counted_once():
    running = CloudCall([object()], None, 0.0, (), iter([(2, 1), (0, 4)]).__next__, Requests(3, 3))
    assert running.bucket_requests() == Requests(5, 4)
    assert running.bucket_requests() == Requests(0, 4)


def prewarmed(*, local: bool, calling: CloudCall | None = None) -> tuple[Prewarmed, dict[str, object]]:
    """Functions that wait at a gate, and their bucket."""
    objects: dict[str, object] = {}
    bucket = SimpleNamespace(
        bucket="b",
        put_object=lambda bucket, key, data: objects.update({key: data}),
        delete_object=lambda bucket, key: objects.pop(key, None),
    )
    meter, allocation = Meter(TARIFF, Allocation(1, 1_024, "s3"), 10), Allocation(1, 1_024, "s3")
    orders = Orders(None, allocation, None, "", "", local, 1.0)  # type: ignore[arg-type]
    journal = SimpleNamespace(paid=lambda bill: None)
    caller = SimpleNamespace(bucket=bucket, end=lambda call, used: None, journal=journal)
    workers = Workers(caller, orders, Models(Path(), bucket), Durations())  # type: ignore[arg-type]
    group = Group(workers, train_epoch, lambda *_: [{}], "epoch 2 of trial 0", meter, call=calling)
    return Prewarmed("run", 0, 2, group, "gate", ExitStack()), objects


def test_on_a_cloud_prewarmed_functions_that_are_not_taken_over_are_told_to_end():
    waiting, objects = prewarmed(local=False)
    waiting.dismiss()
    assert objects == {"gate": NOT_NEEDED}


def test_an_opened_gate_is_deleted_with_its_functions():
    waiting, objects = prewarmed(local=False, calling=call())
    assert waiting.take_over(waiting.group.meter, "model")
    assert objects == {"gate": "model\n"}
    waiting.dismiss()
    assert objects == {}


def test_the_usage_of_prewarmed_functions_is_split_between_two_launches():
    waiting, _ = prewarmed(local=False, calling=call(1e12, (Deployed(1_024, 5.0),), Requests(5, 0)))
    first = waiting.used()
    assert first.function_s < 60.0  # and not until their deadline
    assert waiting.take_over(waiting.group.meter, "model")
    waiting.group.bill.add(waiting.group.call, [answered(104.0)], 200.0)
    second = waiting.group.bill
    assert first.calls + second.calls == 2
    assert first.function_s + second.function_s == pytest.approx(6.0 + FINISH_S)
    assert first.deployed_gb_s + second.deployed_gb_s == 5.0
    assert first.bucket.plus(second.bucket) == Requests(5, 0)


@pytest.mark.skipif(find_spec("lithops") is None, reason="lithops is missing: pip install 'mlcd[lithops]'")
class TestInternals:
    def test_a_throttled_call_is_asked_again_by_lithops_itself_and_another_refusal_is_told(self):
        from mlcd.clouds.functions.lithops_internals import record_refusals

        def invoke(payload):
            raise Exception(payload["words"])

        executor = SimpleNamespace(compute_handler=SimpleNamespace(invoke=invoke))
        why = record_refusals(executor)
        first, second = (SimpleNamespace(job_key="job", call_id=number) for number in ("00000", "00001"))
        asked = {"job_key": "job", "call_ids": ["00000"]}
        assert executor.compute_handler.invoke({**asked, "words": "Error 429: Rate exceeded"}) is None
        assert why(first) == ""
        with pytest.raises(Exception, match="not deployed"):
            executor.compute_handler.invoke({**asked, "words": "Runtime: not deployed"})
        assert (why(first), why(second)) == ("the call was refused: Runtime: not deployed", "")

    def test_requests_to_the_bucket_are_counted_as_s3_bills_them(self):
        import boto3

        from mlcd.clouds.functions.lithops_internals import count_requests

        client = boto3.client("s3", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
        noted: list[str] = []
        since = count_requests(SimpleNamespace(get_client=lambda: client), noted.append)
        for method, url in (
            ("PUT", "http://s3/bucket/key"),
            ("GET", "http://s3/bucket?list-type=2&prefix=a/b"),
            ("GET", "http://bucket.s3/?list-type=2"),
            ("GET", "http://s3/bucket/key"),
            ("HEAD", "http://s3/bucket"),
            ("POST", "http://s3/bucket?delete"),
            ("DELETE", "http://s3/bucket/key"),
        ):
            client.meta.events.emit("before-send.s3.Any", request=SimpleNamespace(method=method, url=url))
        assert (since(), since()) == ((3, 2), (0, 0))
        assert noted == ["put", "put", "put", "get", "get"]

    def test_what_it_takes_to_create_a_function_is_heard(self):
        from botocore.hooks import HierarchicalEmitter

        from mlcd.clouds.functions.lithops_internals import deploy

        emitter = HierarchicalEmitter()
        told: list[dict[str, object]] = []
        client = SimpleNamespace(
            meta=SimpleNamespace(events=emitter), put_function_event_invoke_config=lambda **said: told.append(said)
        )
        emit = emitter.emit

        def select_runtime(job, memory_mb):
            named = {"FunctionName": "worker"}
            emit("provide-client-params.lambda.CreateFunction", params={**named, "MemorySize": memory_mb})
            emit("provide-client-params.lambda.Invoke", params=named)
            emit("after-call.lambda.Invoke")

        executor = SimpleNamespace(
            compute_handler=SimpleNamespace(backend=SimpleNamespace(lambda_client=client)),
            invoker=SimpleNamespace(select_runtime=select_runtime),
        )
        ((memory_mb, seconds),) = deploy(executor, 512)
        assert memory_mb == 512
        assert 0 <= seconds < 60
        assert told == [{"FunctionName": "worker", "MaximumRetryAttempts": 0}]  # nobody would wait for another try


def test_functions_do_not_import_yaml_which_lambda_lacks():
    code = "import mlcd.clouds.functions.worker, sys; sys.exit('yaml' in sys.modules)"
    root = str(Path(__file__).parents[2])
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


def test_a_crashed_launch_is_billed_until_its_functions_deadline_however_late_it_is_reclaimed(tmp_path):
    backend = LithopsFunctions(tmp_path, WallClock(datetime.now(UTC)), {}, "aws_lambda")
    configuration = Configuration(Offer("function", 0.1, 1, 1.0), 2, Allocation(2, 1_024, "s3"))
    folder = backend.launches.open(Launch("run-1", configuration, Purpose.RUN, 1.0, None, 1))
    began_at = started_at(folder)
    for until in (began_at + 30.0, began_at + 20.0):
        record_deadline(folder, until)
    assert backend.reclaim("run-1") == pytest.approx(30.0)
    assert backend.reclaim("never ordered") is None
