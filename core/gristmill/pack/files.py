"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat


def replace_file(path: str, data: bytes) -> None:
    """Put a file with these bytes in the place of whatever file has this path. Raises OSError.

    Who has the old file open, or mapped, keeps the old bytes. Nothing is left behind where it fails, also when it is
    interrupted. The mode is that of any other new file, as the umask says. Links are followed. What is no plain file (a
    device, a pipe) is never replaced: the bytes are written into it.
    """
    path = os.path.realpath(path) if os.path.islink(path) else path
    if _takes_bytes(path):
        with open(path, "wb") as file:
            file.write(data)
        return
    temporary = f"{path}.{os.getpid()}-{os.urandom(6).hex()}.tmp"
    if len(os.fsencode(os.path.basename(temporary))) > 255:
        # A name that is allowed, but only just.
        temporary = os.path.join(os.path.dirname(path), os.path.basename(temporary)[-40:])
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _takes_bytes(path: str) -> bool:
    """Whether the path is of something that is there and is neither a plain file nor a folder."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
