"""A client of the Open Inference Protocol v2 over gRPC, with message types built at run time (no protoc).

https://github.com/kserve/open-inference-protocol/blob/main/specification/protocol/open_inference_grpc.proto; only the
fields that a client needs, since protobuf skips unknown ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from mlcd.clouds.load.generate import RequestFailed, Target
from mlcd.clouds.load.http import MOST_BODY_BYTES
from mlcd.clouds.tensors import Port, Tensors, datatype_of, to_bytes
from mlcd.core.errors import BackendError, MissingExtra

SERVICE = "/inference.GRPCInferenceService/"
TEXT, NUMBER, FLAG, BYTES = 9, 3, 8, 12
"""Protobuf's numbers for string, int64, bool and bytes."""
REPEATED = 100
"""Added to the type of a repeated field."""
MANY_NUMBERS, MANY_BYTES = NUMBER + REPEATED, BYTES + REPEATED

FIELDS: Mapping[str, Mapping[str, tuple[int, int | str]]] = {
    "ServerReadyRequest": {},
    "ServerReadyResponse": {"ready": (1, FLAG)},
    "ModelReadyRequest": {"name": (1, TEXT), "version": (2, TEXT)},
    "ModelReadyResponse": {"ready": (1, FLAG)},
    "ModelMetadataRequest": {"name": (1, TEXT), "version": (2, TEXT)},
    "TensorMetadata": {"name": (1, TEXT), "datatype": (2, TEXT), "shape": (3, MANY_NUMBERS)},
    "ModelMetadataResponse": {"name": (1, TEXT), "inputs": (4, "TensorMetadata"), "outputs": (5, "TensorMetadata")},
    "Tensor": {"name": (1, TEXT), "datatype": (2, TEXT), "shape": (3, MANY_NUMBERS)},
    "ModelInferRequest": {"model_name": (1, TEXT), "inputs": (5, "Tensor"), "raw_input_contents": (7, MANY_BYTES)},
    "ModelInferResponse": {"outputs": (5, "Tensor"), "raw_output_contents": (6, MANY_BYTES)},
}
"""The fields of each message: number, and type, or the message that it repeats."""
SIZE_OPTIONS = (("grpc.max_receive_message_length", MOST_BODY_BYTES), ("grpc.max_send_message_length", -1))


@dataclass(frozen=True)
class OverGrpc:
    """One model of a server at `host:port`. `timeout_s`: of every request except those of a load."""

    address: str
    model: str
    timeout_s: float = 5.0

    def is_ready(self) -> bool:
        """Whether the server and its model report that they are ready."""
        try:
            server = self._call("ServerReady", message("ServerReadyRequest")())
            return bool(server.ready and self._call("ModelReady", message("ModelReadyRequest")(name=self.model)).ready)
        except BackendError:
            return False

    def inputs(self) -> tuple[Port, ...]:
        """The inputs of the model. BackendError if the server does not answer correctly."""
        metadata = self._call("ModelMetadata", message("ModelMetadataRequest")(name=self.model))
        return tuple(Port(each.name, each.datatype, tuple(each.shape)) for each in metadata.inputs)

    def takes_bytes(self) -> bool:
        """Always: gRPC sends tensors as bytes."""
        return True

    def target(self, inputs: Tensors, binary: bool) -> Target:
        """A connection that repeats this request."""
        return GrpcTarget(self.address, infer_request(self.model, inputs))

    def _call(self, method: str, request: Any) -> Any:
        grpc = _grpc()
        with grpc.insecure_channel(self.address, options=SIZE_OPTIONS) as channel:
            ask = channel.unary_unary(
                SERVICE + method,
                request_serializer=type(request).SerializeToString,
                response_deserializer=message(f"{method}Response").FromString,
            )
            try:
                return ask(request, timeout=self.timeout_s)
            except grpc.RpcError as error:
                raise BackendError(f"grpc://{self.address}: {_reason(error, self.timeout_s)}") from None


class GrpcTarget:
    """A target that repeats one request."""

    def __init__(self, address: str, request: bytes) -> None:
        self._request = request
        # A separate connection: gRPC would otherwise share one per address, which limits the requests in flight.
        options = (*SIZE_OPTIONS, ("grpc.use_local_subchannel_pool", 1))
        self._channel = _grpc().aio.insecure_channel(address, options=options)
        self._ask = self._channel.unary_unary(SERVICE + "ModelInfer")

    async def send(self) -> None:
        """Send the request; raise unless the response has outputs."""
        grpc = _grpc()
        try:
            answer = await self._ask(self._request)
        except grpc.RpcError as error:
            raise RequestFailed(_reason(error)) from None
        if not message("ModelInferResponse").FromString(answer).outputs:
            raise RequestFailed("the answer has no outputs")

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()


def _reason(error: Any, timeout_s: float = 0.0) -> str:
    """The reason of an error, in one line."""
    code = error.code().name
    if code == "DEADLINE_EXCEEDED" and timeout_s:
        return f"no answer within {timeout_s:g} s"
    if code == "UNAVAILABLE" and "refused" in (error.details() or ""):
        return "connection refused"
    return " ".join(f"gRPC {code}: {error.details()}".split())[:300]


def _grpc() -> Any:
    try:
        import grpc
    except ImportError:
        raise MissingExtra("a gRPC endpoint", "serve") from None
    return grpc


@cache
def message(name: str) -> Any:
    """The class of a message."""
    try:
        from google.protobuf import message_factory
    except ImportError:
        raise MissingExtra("a gRPC endpoint", "serve") from None
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"inference.{name}"))


def infer_request(model: str, inputs: Tensors) -> bytes:
    """An encoded inference request: names and shapes, then the tensors as bytes."""
    request = message("ModelInferRequest")(model_name=model)
    for name, tensor in inputs.items():
        request.inputs.add(name=name, datatype=datatype_of(tensor), shape=tensor.shape)
        request.raw_input_contents.append(to_bytes(tensor))
    return bytes(request.SerializeToString())


@cache
def _pool() -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool

    file = descriptor_pb2.FileDescriptorProto(name="inference.proto", package="inference", syntax="proto3")
    for name, fields in FIELDS.items():
        descriptor = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            one = descriptor.field.add(name=field, number=number, label=1)
            if isinstance(kind, str):
                one.type, one.type_name, one.label = 11, f".inference.{kind}", 3
            else:
                one.type, one.label = (kind - REPEATED, 3) if kind > REPEATED else (kind, 1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool
