"""Places where `mlcd serve --on NAME` runs its trials, one file each."""

FORMS = {"local": ("local",), "recorded": ("recorded:DIR",), "skypilot": ("skypilot", "skypilot:CLOUD")}
"""The forms of each name after `--on`."""
