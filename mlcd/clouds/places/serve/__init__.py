"""Places that models are served at for trials, one file each, for `mlcd serve --on NAME`."""

FORMS = {"local": ("local",), "recorded": ("recorded:DIR",), "skypilot": ("skypilot", "skypilot:CLOUD")}
"""How each is written after `--on`."""
