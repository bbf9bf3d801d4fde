"""What is wrong with what plugins give, in a phrase to be read after the plugin's name; an empty text if nothing is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from gristmill.plugin.artifacts import Blob, KernelArgument, KernelRecord
from gristmill.plugin.protocols import (
    CommandEntry,
    DeviceDescription,
    KeyDescription,
    NativeSupport,
    PassEntry,
    Probe,
    TargetKind,
)

KEY_TYPES = ("string", "integer", "number", "boolean", "strings")
"""The types that a key of a target's table may have."""


# What hooks register --------------------------------------------------------------------------------------------------


def registered(hook: str, item: Any) -> str:
    """What is wrong with one item that a hook returned."""
    return _REGISTERED[hook](item)


def _target_kind(item: Any) -> str:
    if not isinstance(item, TargetKind):
        return _not_a(TargetKind, item)
    what = f"gives the target kind {item.name!r}"
    if wrong := _fields(item, name=_is_name, summary=_is_text, generator=_is_name, blob_kinds=_are_names):
        return f"{what}, {wrong}"
    if wrong := _fields(item, resolve=_is_callable, capabilities=_is_callable, architectures=_are_names):
        return f"{what}, {wrong}"
    if wrong := _fields(item, keys=_is_list, texts=_are_names, device_type=_is_integer):
        return f"{what}, {wrong}"
    if item.from_device is not None and (wrong := _is_callable(item.from_device)):
        return f"{what}, whose from_device {wrong}"
    for key in item.keys:
        if not isinstance(key, KeyDescription):
            return f"{what}, whose keys hold {kind_of(key)} where a KeyDescription is wanted"
        if wrong := _fields(key, name=_is_name, type=_is_text, meaning=_is_text, choices=_are_names):
            return f"{what} with the key {key.name!r}, {wrong}"
        if key.type not in KEY_TYPES:
            return (
                f"{what} with the key {key.name!r} of the unknown type {key.type!r}; types are {', '.join(KEY_TYPES)}"
            )
    return ""


def _pass_entry(item: Any) -> str:
    if not isinstance(item, PassEntry):
        return _not_a(PassEntry, item)
    wrong = _fields(item, name=_is_name, phase=_is_text, make=_is_callable, summary=_is_text)
    wrong = wrong or _fields(item, after=_are_names, before=_are_names)
    return f"gives the pass {item.name!r}, {wrong}" if wrong else ""


def _native_support(item: Any) -> str:
    if not isinstance(item, NativeSupport):
        return _not_a(NativeSupport, item)
    wrong = _fields(item, name=_is_name, machines=_are_names, identity=_is_callable, build=_is_callable)
    return f"gives the native support {item.name!r}, {wrong}" if wrong else ""


def _command_entry(item: Any) -> str:
    if not isinstance(item, CommandEntry):
        return _not_a(CommandEntry, item)
    wrong = _fields(item, name=_is_name, summary=_is_text, add_arguments=_is_callable, run=_is_callable)
    return f"gives the command {item.name!r}, {wrong}" if wrong else ""


def _class_with(protocol: str, *members: str, **fields: Callable[[Any], str]) -> Callable[[Any], str]:
    def check(item: Any) -> str:
        if not isinstance(item, type):
            return f"gives {kind_of(item)} where a class ({protocol}) is wanted"
        what = f"gives the class {item.__qualname__}"
        missing = [member for member in ("name", *fields, *members) if not hasattr(item, member)]
        if missing:
            return f"{what}, which lacks {', '.join(missing)} of {protocol}"
        wrong = _fields(item, name=_is_name, **fields)
        return f"{what}, {wrong}" if wrong else ""

    return check


# What they answer when they work --------------------------------------------------------------------------------------


def blobs(answer: Any) -> str:
    """What is wrong with what a code generator gave."""
    if not isinstance(answer, (list, tuple)):
        return f"gave {kind_of(answer)}, not a list of blobs"
    entries: set[object] = set()
    for blob in answer:
        if not isinstance(blob, Blob):
            return f"gave {kind_of(blob)} where a Blob is wanted"
        wrong = _fields(blob, kind=_is_name, data=_is_bytes, target=_is_text, host=_is_text, entry_points=_are_names)
        wrong = wrong or _fields(blob, requirements=_are_scalars, kernels=_is_list, texts=_is_list)
        if wrong:
            return f"gave a blob of kind {blob.kind!r}, {wrong}"
        if not blob.data:
            return f"gave a blob of kind {blob.kind!r} without a byte"
        # Blobs with the same entry points are codes to choose from, so something must tell them apart.
        told_by = (blob.kind, blob.target, blob.host, tuple(sorted(blob.requirements.items())))
        for entry in blob.entry_points:
            if (entry, *told_by) in entries:
                return f"gave the entry point {entry!r} twice"
            entries.add((entry, *told_by))
        for record in blob.kernels:
            if wrong := _kernel_record(record, blob):
                return wrong
        for text in blob.texts:
            if not isinstance(text, tuple) or len(text) != 2 or not all(isinstance(part, str) for part in text):
                return f"gave a blob of kind {blob.kind!r} whose texts are not pairs of kind and text"
    return ""


def _kernel_record(record: Any, blob: Blob) -> str:
    if not isinstance(record, KernelRecord):
        return f"gave {kind_of(record)} where a KernelRecord is wanted"
    wrong = _fields(record, name=_is_name, entry=_is_name, arguments=_is_list, axes=_are_names, extra=_are_scalars)
    if wrong:
        return f"gave a record of the kernel {record.name!r}, {wrong}"
    if record.entry not in blob.entry_points:
        return f"gave a record of the kernel {record.name!r}, whose entry point {record.entry!r} its blob does not have"
    for argument in record.arguments:
        if not isinstance(argument, KernelArgument):
            return f"gave a record of the kernel {record.name!r} with {kind_of(argument)} as an argument"
    return ""


def probe(answer: Any) -> str:
    """What is wrong with what a runtime found."""
    if not isinstance(answer, Probe):
        return f"gave {kind_of(answer)}, not a Probe"
    if wrong := _fields(answer, devices=_is_list, reason=_is_text):
        return f"gave a Probe, {wrong}"
    for device in answer.devices:
        if not isinstance(device, DeviceDescription):
            return f"gave {kind_of(device)} where a DeviceDescription is wanted"
        if wrong := _fields(device, index=_is_integer, name=_is_text, properties=_are_scalars):
            return f"gave the device {device.name!r}, {wrong}"
    return ""


def device(answer: Any) -> str:
    """What is wrong with an opened device."""
    members = ("name", "device_type", "empty", "array", "load", "synchronize", "properties")
    missing = [member for member in members if not hasattr(answer, member)]
    return f"gave {kind_of(answer)}, which lacks {', '.join(missing)} of Device" if missing else ""


# Fields ---------------------------------------------------------------------------------------------------------------


def _fields(item: Any, **checks: Callable[[Any], str]) -> str:
    for name, check in checks.items():
        if wrong := check(getattr(item, name)):
            return f"whose {name} {wrong}"
    return ""


def _is_text(value: Any) -> str:
    return "" if isinstance(value, str) else f"is {kind_of(value)}, not a text"


def _is_name(value: Any) -> str:
    if not isinstance(value, str):
        return f"is {kind_of(value)}, not a text"
    if not value or not value.isprintable() or any(character in " :" for character in value):
        return f"is {value!r}: a name is not empty and has no blanks and no colons"
    return ""


def _is_list(value: Any) -> str:
    return "" if isinstance(value, (list, tuple)) else f"is {kind_of(value)}, not a tuple"


def _are_names(value: Any) -> str:
    if wrong := _is_list(value):
        return wrong
    return next((f"holds one that {wrong}" for each in value if (wrong := _is_name(each))), "")


def _is_callable(value: Any) -> str:
    return "" if callable(value) else f"is {kind_of(value)}, which cannot be called"


def _is_integer(value: Any) -> str:
    return "" if type(value) is int else f"is {kind_of(value)}, not an int"


def _is_bytes(value: Any) -> str:
    return "" if isinstance(value, bytes) else f"is {kind_of(value)}, not bytes"


def _are_scalars(value: Any) -> str:
    if not isinstance(value, Mapping):
        return f"is {kind_of(value)}, not a mapping"
    for name, each in value.items():
        if not isinstance(name, str) or not name.isprintable():
            return f"has the key {name!r}, which is no printable text"
        if isinstance(each, str) and not each.isprintable():
            return f"has under {name!r} a text that cannot be printed"
        if not isinstance(each, (str, int, float)) or (isinstance(each, float) and not math.isfinite(each)):
            return f"has under {name!r} {kind_of(each)} where a text, a finite number or a bool is wanted"
    return ""


def _not_a(kind: type[Any], item: Any) -> str:
    return f"gives {kind_of(item)} where a {kind.__name__} is wanted"


def kind_of(value: object) -> str:
    """What a value is, in a phrase."""
    return "None" if value is None else f"an object of type {type(value).__qualname__}"


_REGISTERED: Mapping[str, Callable[[Any], str]] = {
    "gristmill_targets": _target_kind,
    "gristmill_code_generators": _class_with("CodeGenerator", "generate"),
    "gristmill_native_support": _native_support,
    "gristmill_passes": _pass_entry,
    "gristmill_runtimes": _class_with("Runtime", "probe", "open", "refusal", "preference", blob_kinds=_are_names),
    "gristmill_executors": _class_with("Executor", "map"),
    "gristmill_commands": _command_entry,
}
