"""Begin a project: a manifest and a first kernel, ready to build.

Writes kernels.toml and kernels/scale.py into the folder, which is made where it does not exist. Files that are there
already are not touched; nothing is written then.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
from pathlib import Path

from gristmill.cli.output import add_json_option, write_json
from gristmill.errors import Diagnostic, UserError
from gristmill.files import replace_file

MANIFEST = """\
schema = 1

[project]
name = "{name}"

# The machines to build for: name = "kind:architecture". `gristmill targets` lists the kinds.
[targets]
cpu = "cpu:x86-64-v3"

# One pack a module: build/kernels/scale.kpack
[[module]]
name = "scale"
source = "kernels/scale.py"
"""

KERNEL = '''\
"""A first kernel: every public function becomes a function of the pack."""

from gristmill.script import tir as T


@T.prim_func
def scale(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32"), factor: T.float32):
    for i in range(n):
        y[i] = x[i] * factor
'''


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", default=".", help="the project's folder (default: the current one)")
    parser.add_argument("--name", help="the project's name (default: the folder's)")
    parser.add_argument("--force", action="store_true", help="overwrite files that are there")
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    folder = Path(options.folder)
    name = project_name(folder.resolve().name) if options.name is None else options.name
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", name):
        hint = "use letters, digits, `_` and `-`, begin with a letter"
        raise UserError(Diagnostic("GM0005", f"`{name}` can't be the name of a project", hint=hint))
    files = {folder / "kernels.toml": MANIFEST.format(name=name), folder / "kernels" / "scale.py": KERNEL}
    present = [path for path in files if os.path.lexists(path)]
    if present and not options.force:
        listed = ", ".join(str(path) for path in present)
        raise UserError(
            Diagnostic("GM0004", f"would overwrite {listed}", hint="choose another folder, or overwrite with --force")
        )
    try:
        # The manifest last: where it is, the project is whole.
        for path, text in reversed(files.items()):
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, text.encode(), follow_links=True)
    except OSError as error:
        message = f"can't write `{error.filename}`: {error.strerror}"
        raise UserError(Diagnostic("GM0006", message, hint="choose a folder that can be written to")) from None
    if options.json:
        write_json({"project": name, "written": [str(path) for path in files]})
    else:
        for path in files:
            print(f"wrote {path}")
        print(f"next: gristmill build {shell_word(folder / 'kernels.toml')}")
    return 0


def shell_word(path: Path) -> str:
    """The path as one word of a shell's command line, not to be taken for an option."""
    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)


def project_name(folder: str) -> str:
    """A name for a project in the folder of that name."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", folder).strip("-")[:64]
    return plain if re.match(r"[A-Za-z_]", plain) else f"project-{plain}".rstrip("-")
