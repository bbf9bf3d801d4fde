"""Start-up: what `import gristmill` and `gristmill --version` cost beyond bare Python (CPU time, compiled bytecode)."""

from __future__ import annotations

from measure import PYTHON, process_seconds


def main() -> None:
    seconds = process_seconds(
        {
            "python": [PYTHON, "-c", "pass"],
            "import gristmill": [PYTHON, "-c", "import gristmill"],
            "gristmill --version": [PYTHON, "-m", "gristmill", "--version"],
            "gristmill --help": [PYTHON, "-m", "gristmill", "--help"],
        },
        rounds=15,
    )
    bare = seconds["python"]
    for name, wanted in (("import gristmill", 25), ("gristmill --version", 60), ("gristmill --help", 60)):
        print(f"{name}: {(seconds[name] - bare) * 1e3:.1f} ms more than bare Python (wanted <= {wanted} ms)")


if __name__ == "__main__":
    main()
