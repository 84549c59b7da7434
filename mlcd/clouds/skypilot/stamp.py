"""Runs a command on a node and adds a timestamp to each line of its output: `step 7 [mlcd 1746100000.123]`.

Lines reach MLCD late, sometimes minutes late and many at once, so their arrival times say nothing about the job's
speed. This file is shipped to the nodes with the launch; it needs nothing but Python 3.
"""

import os
import re
import select
import subprocess
import sys
import time

POLL_S = 1.0
"""How often to check whether the command has ended: a process that it left behind may keep its output open."""
_LINE_ENDS = re.compile(rb"\r*\n|\r+")


def stamp(chunk: bytes, at: float) -> bytes:
    """The output, with the time before each line end. Nothing is held back, however long a line is."""
    return _LINE_ENDS.sub(lambda end: b" [mlcd %.3f]" % at + end[0], chunk)


def run(command: list[str]) -> int:
    """Run the command and return its exit status, as a shell would."""
    # The time of day is read once; after that, the monotonic clock counts, which nobody can set.
    unix_s = time.time() - time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if process.stdout is None:
        raise AssertionError("its output is a pipe")
    output, last = process.stdout.fileno(), b"\n"
    while True:
        ended = process.poll() is not None  # checked before reading, so that no output is missed
        if not select.select([output], [], [], 0.0 if ended else POLL_S)[0]:
            if ended:
                break
            continue
        chunk = os.read(output, 65_536)
        if not chunk:
            break
        last = chunk[-1:]
        _write(stamp(chunk, unix_s + time.monotonic()))
    if last != b"\n":  # so that what is written next begins on a new line
        _write(stamp(b"\n", unix_s + time.monotonic()))
    status = process.wait()
    return 128 - status if status < 0 else status


def _write(output: bytes) -> None:
    try:
        while output:
            output = output[os.write(1, output) :]
    except OSError:  # nobody reads the output any more, which is no reason to end the job
        pass


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
