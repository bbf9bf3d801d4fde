"""Files that are written whole or not at all: the one place that puts a file where another may be."""

from __future__ import annotations

import contextlib
import os
import stat


def replace_file(path: str | os.PathLike[str], data: bytes, *, follow_links: bool, mode: int = 0o666) -> None:
    """Put a file with these bytes in the place of whatever file has this path. Raises OSError.

    Who has the old file open, or mapped, keeps the old bytes. Nothing is left behind where it fails, also when it is
    interrupted. The mode is as for any other new file: ``mode`` less what the umask takes away.

    ``follow_links`` is for paths that somebody named: what a symbolic link points to is replaced and the link stays,
    and what is no plain file (a device, a pipe) gets the bytes written into it. Without it, for names that we made up,
    whatever is there but a folder is replaced itself, so that a link which somebody else put there (the folder may be
    everybody's) leads nowhere.
    """
    path = os.fspath(path)
    if follow_links:
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
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
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
