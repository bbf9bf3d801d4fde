"""Golden files: texts that people have read and found good, compared with what is made now.

In a test::

    def test_listing(golden):                        # with pytest_plugins = ["gristmill.testing.golden_fixture"]
        golden.check(FOLDER / "blur.gmir", text)

Where the text differs, the failure shows a unified diff and the command that renews the file.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

OPTION = "--renew-golden"


@dataclass(frozen=True)
class GoldenFiles:
    """How texts are compared with files: or, if ``renew`` is set, written to them.

    ``command`` is what a reader of a failure types to renew the files.
    """

    renew: bool
    command: str

    def check(self, file: Path, text: str) -> None:
        """Compare the text with the file, to the last byte of UTF-8. Raises AssertionError where they differ."""
        if self.renew:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
            return
        kept = file.read_bytes().decode() if file.exists() else None
        if kept != text:
            raise AssertionError(self._failure(file, kept, text))

    def check_folder(self, folder: Path, names: set[str]) -> None:
        """Ask that the files of the folder are those of the names; what has no name any more is removed on renewal.

        Raises AssertionError.
        """
        found = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        if self.renew:
            for name in found - names:
                (folder / name).unlink()
            return
        if found != names:
            lacking, left = sorted(names - found), sorted(found - names)
            raise AssertionError(
                f"{folder} lacks {', '.join(lacking) or 'nothing'}, and has {', '.join(left) or 'nothing'} "
                f"that no test makes\n  renew with: {self.command}"
            )

    def _failure(self, file: Path, kept: str | None, text: str) -> str:
        what = "there is no golden file" if kept is None else "the text is not that of the golden file"
        shown = difflib.unified_diff(
            _lines(kept or ""), _lines(text), f"{file} (golden)", f"{file} (made now)", lineterm=""
        )
        return "\n".join((what, *shown, f"read the difference; if it is right, renew with: {self.command}"))


def _lines(text: str) -> list[str]:
    """The lines as they are shown in a difference: with what else ends them than a newline."""
    lines = text.split("\n")
    if lines[-1]:
        lines[-1] += "  (no newline at the end)"
    else:
        lines.pop()
    return [line.replace("\r", "\\r") for line in lines]
