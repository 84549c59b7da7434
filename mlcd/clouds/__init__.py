"""Backends: where jobs run. The places that `--on` can name are in `places/`."""
