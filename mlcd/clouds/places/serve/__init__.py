"""Places that models are served at for trials, one file each, for `mlcd serve --on NAME`."""

FORMS = {"local": ("local",), "recorded": ("recorded:DIR",)}
"""How each is written after `--on`."""
