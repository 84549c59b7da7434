"""MLCD's own server for ONNX models, with dynamic batching: `python -m mlcd.clouds.servers MODEL --batch 8`."""
