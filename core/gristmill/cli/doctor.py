"""Say what is here, what is not, and why: Python, libraries, processor, plugins, devices, settings.

Ends with status 3 where something is missing that building or running needs.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass

from gristmill import knobs
from gristmill.cli.output import add_json_option, write_json
from gristmill.cli.selection import add_plugin_option, registry_of
from gristmill.errors import EXIT_DONE, EXIT_MISSING, GristmillError
from gristmill.plugin.registry import Registry
from gristmill.version import __version__

_PROCESSOR_RUNTIME = "cpu"
"""The runtime whose device is the processor, which has a section of its own."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report.

    ``status`` is ``ok``, ``missing`` (something does not work), ``absent`` (fine without) or, of a setting, ``not set``.
    """

    section: str
    name: str
    status: str
    detail: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_plugin_option(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    findings = [*_python(), *_libraries(), *_processor(), *_settings()]
    registry = registry_of(options)
    findings += [*_plugins(registry), *_devices(registry)]
    if options.json:
        write_json({"findings": [_as_json(finding) for finding in findings]})
    else:
        section = ""
        for finding in findings:
            if finding.section != section:
                print(finding.section)
                section = finding.section
            print(f"  {finding.status:<7}  {finding.name}: {finding.detail}")
    return EXIT_MISSING if any(finding.status == "missing" for finding in findings) else EXIT_DONE


def _as_json(finding: Finding) -> dict[str, str]:
    return {
        "section": finding.section,
        "name": finding.name,
        "status": finding.status,
        "detail": finding.detail,
    }


def _python() -> list[Finding]:
    version = (
        f"{platform.python_version()} ({platform.python_implementation()}), {platform.system()} {platform.machine()}"
    )
    return [
        Finding("Gristmill", "gristmill", "ok", f"{__version__}, in {os.path.dirname(knobs.__file__)}"),
        Finding("Gristmill", "python", "ok" if sys.version_info >= (3, 11) else "missing", version),
    ]


def _libraries() -> list[Finding]:
    return [
        _try("Libraries", "numpy", _numpy),
        _try("Libraries", "llvmlite", _llvmlite),
        _try("Libraries", "apache-tvm-ffi", _tvm_ffi),
        _try("Libraries", "pluggy", _version_of("pluggy")),
        _try("Libraries", "tomli", _version_of("tomli")),
    ]


def _try(section: str, name: str, find: Callable[[], str]) -> Finding:
    try:
        return Finding(section, name, "ok", find())
    except Exception as error:
        return Finding(section, name, "missing", f"{type(error).__name__}: {error}")


def _version_of(distribution: str) -> Callable[[], str]:
    def find() -> str:
        from importlib import import_module
        from importlib.metadata import version

        import_module(distribution)
        return version(distribution)

    return find


def _numpy() -> str:
    import numpy

    return numpy.__version__


def _llvmlite() -> str:
    import llvmlite
    from llvmlite import binding

    llvm = ".".join(str(part) for part in binding.llvm_version_info)
    return f"{llvmlite.__version__}, LLVM {llvm}"


def _tvm_ffi() -> str:
    from importlib.metadata import version

    import tvm_ffi  # noqa: F401  (whether its shared library loads is what is asked)

    return version("apache-tvm-ffi")


def _processor() -> list[Finding]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    findings = [Finding("Processor", "threads", "ok", f"{usable} usable of {os.cpu_count()}")]
    try:
        from llvmlite import binding

        features = sorted(name for name, present in binding.get_host_cpu_features().items() if present)
        findings.append(Finding("Processor", "model", "ok", binding.get_host_cpu_name()))
        findings.append(Finding("Processor", "features", "ok", " ".join(features)))
    except Exception as error:
        findings.append(Finding("Processor", "model", "absent", f"not known: {type(error).__name__}: {error}"))
    return findings


def _settings() -> list[Finding]:
    findings = []
    for knob in knobs.ALL:
        try:
            value = knob.value()
        except GristmillError as error:
            findings.append(Finding("Settings", knob.name, "missing", str(error).partition("\n")[0]))
            continue
        is_set = value != knob.default
        detail = f"{value}" if is_set else f"default: {knob.default_text}. {knob.meaning}"
        findings.append(Finding("Settings", knob.name, "ok" if is_set else "not set", detail))
    findings.append(Finding("Settings", "cache folder", "ok", knobs.cache_folder()))
    return findings


def _plugins(registry: Registry) -> list[Finding]:
    findings = []
    states = {"ok": "ok", "installed": "ok", "disabled": "absent", "broken": "missing"}
    for row in registry.listing(check=True):
        detail = f"{row.distribution} {row.version} ({row.value})" + (f": {row.reason}" if row.reason else "")
        findings.append(Finding("Plugins", f"{row.group} {row.name}", states[row.status], detail))
    return findings


def _value_text(value: object) -> str:
    return str(value).replace(",", " ")


def _devices(registry: Registry) -> list[Finding]:
    findings = []
    for runtime in registry.runtimes():
        found = runtime.probe()
        for device in found.devices:
            name = f"{runtime.name}:{device.index}"
            findings.append(Finding("Devices", name, "ok", device.name))
            if runtime.name != _PROCESSOR_RUNTIME and device.properties:
                told = ", ".join(f"{key} {_value_text(value)}" for key, value in device.properties.items())
                findings.append(Finding("Devices", f"{name} has", "ok", told))
        if not found.devices:
            findings.append(Finding("Devices", runtime.name, "absent", found.reason or "no device"))
    if not any(finding.status == "ok" for finding in findings):
        findings.append(Finding("Devices", "any", "missing", "no runtime has a device: packs can't be run here"))
    return findings
