"""Places that machines are rented at, one file each: `place()` makes the cloud of a job there.

`--on NAME:REST` finds the file of that name, or an entry point of `mlcd.clouds` in another package.
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
"""How each is written after `--on`."""
