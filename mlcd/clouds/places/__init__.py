"""The places that `--on` can name, one file each. Its `place()` makes the `Cloud` of a job.

`--on NAME:REST` finds the file NAME here, or an entry point of `mlcd.clouds` in another package.
"""

FORMS = {
    "simulated": ("simulated",),
    "recorded": ("recorded:DIR",),
    "market": ("market:DIR",),
    "local": ("local", "local:FILE"),
    "ray": ("ray:FILE",),
    "skypilot": ("skypilot", "skypilot:CLOUD"),
    "functions": ("functions",),
}
"""What to write after `--on` for each place."""
