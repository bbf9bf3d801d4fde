"""Run a command with a limit in minutes: ``python tests/time_limit.py MINUTES COMMAND ...``.

A command that runs over it is interrupted, so that pytest still says what it was at, and killed ten seconds later.
The exit status is the command's, or 124 where the time was up.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence

TIME_IS_UP = 124
SECONDS_TO_FINISH = 10


def run_limited(command: Sequence[str], seconds: float) -> int:
    """The exit status of the command, or ``TIME_IS_UP``."""
    started = time.monotonic()
    process = subprocess.Popen(command)
    try:
        status = process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=SECONDS_TO_FINISH)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        print(
            f"stopped after {seconds / 60:g} minutes, the budget of this command: {' '.join(command)}", file=sys.stderr
        )
        return TIME_IS_UP
    except KeyboardInterrupt:
        process.wait()
        return 130
    print(
        f"took {(time.monotonic() - started) / 60:.1f} of {seconds / 60:g} minutes: {' '.join(command)}",
        file=sys.stderr,
    )
    return status


if __name__ == "__main__":
    sys.exit(run_limited(sys.argv[2:], 60 * float(sys.argv[1])))
