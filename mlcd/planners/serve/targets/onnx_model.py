"""An ONNX model in MLServer: `"implementation": "onnx_model.OnnxModel"` in its model-settings.json.

MLServer imports this file from the model's folder; it needs onnxruntime in MLServer's environment, and nothing of MLCD.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse, MetadataTensor
from mlserver.utils import get_model_uri

DATATYPES = {"float": "FP32", "double": "FP64", "float16": "FP16", "bool": "BOOL", "string": "BYTES"}
DATATYPES |= {f"{sign}int{bits}": f"{sign.upper()}INT{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}


class OnnxModel(MLModel):
    """Runs one forward pass at a time in a thread, so that the next batch is read meanwhile."""

    async def load(self) -> bool:
        """Open the model with the number of threads from its settings."""
        parameters = self.settings.parameters
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(((parameters and parameters.extra) or {}).get("threads", 1))
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.force_spinning_stop", "1")
        path = await get_model_uri(self.settings)
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self._pool = ThreadPoolExecutor(1)
        self.inputs = [_described(each) for each in self._session.get_inputs()]
        self.outputs = [_described(each) for each in self._session.get_outputs()]
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Run one forward pass."""
        feed = {each.name: NumpyCodec.decode_input(each) for each in payload.inputs}
        names = [each.name for each in self._session.get_outputs()]
        computed = await asyncio.get_running_loop().run_in_executor(self._pool, self._session.run, names, feed)
        outputs = [NumpyCodec.encode_output(name, value) for name, value in zip(names, computed, strict=True)]
        return InferenceResponse(model_name=self.name, outputs=outputs)


def _described(node: onnxruntime.NodeArg) -> MetadataTensor:
    kind = str(node.type).removeprefix("tensor(").removesuffix(")")
    shape = [side if isinstance(side, int) else -1 for side in node.shape]
    return MetadataTensor(name=node.name, datatype=DATATYPES[kind], shape=shape)
