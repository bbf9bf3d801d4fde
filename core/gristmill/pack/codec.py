"""The manifest as JSON: written one way only, read strictly.

Keys that a reader does not know are ignored; everything it knows must have the right type. Objects that give a key twice
are refused, for two readers might take different ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from gristmill.errors import Diagnostic, UserError
from gristmill.pack import format as form
from gristmill.pack.format import Function, Json, Manifest, Member, Parameter, Scalar, Versions

_Item = TypeVar("_Item")
_HEX = frozenset("0123456789abcdef")
_LARGEST_INTEGER = 2**63


def encode(manifest: Manifest) -> bytes:
    """The manifest's JSON: sorted keys, no blanks, UTF-8; defaults are left out of parameters and members."""
    record = {
        "schema": manifest.versions.container,
        "min_reader": manifest.min_reader,
        "requires": list(manifest.requires),
        "host_abi": manifest.versions.host_abi,
        "kernel_record": manifest.versions.kernel_record,
        "project": manifest.project,
        "module": manifest.module,
        "provenance": dict(manifest.provenance),
        "functions": [_function_record(function) for function in manifest.functions],
        "blobs": [_member_record(member) for member in manifest.blobs],
        "texts": [_member_record(member) for member in manifest.texts],
    }
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def _function_record(function: Function) -> dict[str, Any]:
    return {
        "name": function.name,
        "signature": function.signature,
        "summary": function.summary,
        "parameters": [
            {
                "name": parameter.name,
                "kind": parameter.kind,
                "dtype": parameter.dtype,
                "shape": list(parameter.shape),
                "written": parameter.written,
            }
            for parameter in function.parameters
        ],
    }


def _member_record(member: Member) -> dict[str, Any]:
    record: dict[str, Any] = {
        "name": member.name,
        "kind": member.kind,
        "offset": member.offset,
        "size": member.size,
        "sha256": member.sha256,
        "target": member.target,
        "host": member.host,
        "entry_points": list(member.entry_points),
        "requirements": dict(member.requirements),
        "kernels": [dict(kernel) for kernel in member.kernels],
    }
    always = ("name", "kind", "offset", "size", "sha256")
    return {key: value for key, value in record.items() if key in always or value}


def decode(text: bytes | memoryview, pack: str) -> Manifest:
    """Reads a manifest; ``pack`` is what messages call the file.

    Raises ``UserError`` GM0803 for text that is no manifest, GM0804 for one that this version of Gristmill is too old to
    read.
    """
    try:
        record = json.loads(
            bytes(text).decode(), object_pairs_hook=_object, parse_constant=_constant, parse_float=_finite
        )
    except (ValueError, RecursionError) as error:
        what = "is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise _malformed(pack, f"it is not the JSON that is expected: {what}") from None
    if not isinstance(record, dict):
        raise _malformed(pack, "it is not a JSON object")
    fields = _Fields(record, "", pack)
    versions = _read_versions(fields)
    manifest = Manifest(
        project=fields.text("project"),
        module=fields.text("module"),
        functions=fields.items("functions", _read_function, form.MOST_FUNCTIONS),
        blobs=fields.items("blobs", _read_member, form.MOST_MEMBERS),
        texts=fields.items("texts", _read_member, form.MOST_MEMBERS),
        provenance=fields.scalars("provenance"),
        versions=versions,
        requires=fields.texts("requires"),
        min_reader=fields.integer("min_reader", 1),
    )
    if len(manifest.blobs) + len(manifest.texts) > form.MOST_MEMBERS:
        raise _malformed(pack, f"it lists more than {form.MOST_MEMBERS} members")
    names = [function.name for function in manifest.functions]
    if len(set(names)) != len(names):
        raise _malformed(pack, "it describes one function twice")
    return manifest


def _read_versions(fields: _Fields) -> Versions:
    """The version numbers, checked before the rest is read: a newer manifest may have another shape."""
    schema = fields.integer("schema")
    if schema != form.CONTAINER_SCHEMA:
        raise _too_new(fields.pack, f"its container schema is {schema}, this version of Gristmill reads schema 1")
    if (wanted := fields.integer("min_reader", 1)) > form.READER_VERSION:
        raise _too_new(fields.pack, f"it asks for reader {wanted}, this is reader {form.READER_VERSION}")
    if unknown := sorted(set(fields.texts("requires")) - form.KNOWN_REQUIREMENTS):
        listed = ", ".join(f"`{name}`" for name in unknown)
        raise _too_new(fields.pack, f"it requires {listed}, which this version of Gristmill does not know")
    host_abi, kernel_record = fields.integer("host_abi"), fields.integer("kernel_record")
    if not 1 <= host_abi <= form.HOST_ABI_VERSION:
        raise _too_new(
            fields.pack,
            f"its host interface has version {host_abi}, this version of Gristmill knows 1 to {form.HOST_ABI_VERSION}",
        )
    if not 1 <= kernel_record <= form.KERNEL_RECORD_VERSION:
        raise _too_new(
            fields.pack,
            f"its kernel records have version {kernel_record}, this version of Gristmill knows 1 to "
            f"{form.KERNEL_RECORD_VERSION}",
        )
    return Versions(schema, host_abi, kernel_record)


def _read_function(fields: _Fields) -> Function:
    return Function(
        fields.text("name"),
        fields.text("signature"),
        fields.items("parameters", _read_parameter, 4096),
        fields.text("summary", ""),
    )


def _read_parameter(fields: _Fields) -> Parameter:
    kind = fields.text("kind")
    if kind not in ("buffer", "scalar"):
        raise fields.fault("kind", f"is `{kind}`, not `buffer` or `scalar`")
    return Parameter(
        fields.text("name"), kind, fields.text("dtype"), fields.texts("shape"), fields.flag("written", False)
    )


def _read_member(fields: _Fields) -> Member:
    sha256 = fields.text("sha256")
    if len(sha256) != 64 or not _HEX.issuperset(sha256):
        raise fields.fault("sha256", "is not 64 lower-case hexadecimal digits")
    return Member(
        fields.text("name"),
        fields.text("kind"),
        fields.text("target", ""),
        fields.text("host", ""),
        fields.texts("entry_points"),
        fields.scalars("requirements"),
        fields.objects("kernels"),
        fields.integer("offset"),
        fields.integer("size"),
        sha256,
    )


def _malformed(pack: str, what: str) -> UserError:
    hint = "the file is damaged, or was not written by Gristmill; build it again"
    return UserError(Diagnostic("GM0803", f"the manifest of {pack} cannot be read: {what}", hint=hint))


def _too_new(pack: str, what: str) -> UserError:
    hint = "load it with a newer Gristmill, or build it again with this one"
    return UserError(Diagnostic("GM0804", f"{pack} cannot be read: {what}", hint=hint))


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object gives one key twice")
    return found


def _constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value - value != 0.0:
        raise ValueError(f"{text} is too large")
    return value


def _is_printable(text: str) -> bool:
    """Whether the text, of several lines perhaps, can go to a terminal: no escape sequences, no lone surrogates."""
    return text.replace("\n", "").isprintable()


def _is_scalar(value: object) -> bool:
    if isinstance(value, int):
        return -_LARGEST_INTEGER <= value < _LARGEST_INTEGER
    return isinstance(value, float) or (isinstance(value, str) and _is_printable(value))


@dataclass(slots=True)
class _Fields:
    """Typed access to one JSON object; ``path`` is where it is in the manifest, for messages."""

    record: Mapping[str, Any]
    path: str
    pack: str

    def fault(self, key: str, what: str) -> UserError:
        return _malformed(self.pack, f"`{self.path}{key}` {what}")

    def get(self, key: str, default: Any, kind: type, called: str) -> Any:
        value = self.record.get(key, default)
        # A bool is an int to Python, but not here.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.fault(key, f"is not {called}" if key in self.record else "is missing")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        value: str = self.get(key, default, str, "a text")
        if not _is_printable(value):
            raise self.fault(key, "has characters that cannot be printed")
        return value

    def integer(self, key: str, default: int | None = None) -> int:
        value: int = self.get(key, default, int, "an integer")
        if not 0 <= value < _LARGEST_INTEGER:
            raise self.fault(key, f"is {value}, out of range")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value: bool = self.get(key, default, bool, "true or false")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        values: list[Any] = self.get(key, [], list, "a list")
        if not all(isinstance(value, str) and _is_printable(value) for value in values):
            raise self.fault(key, "is not a list of printable texts")
        return tuple(values)

    def scalars(self, key: str) -> dict[str, Scalar]:
        values: dict[str, Any] = self.get(key, {}, dict, "an object")
        for name, value in values.items():
            if not _is_scalar(value) or not _is_printable(name):
                raise self.fault(f"{key}.{name}", "is not a printable text, a number of 64 bits, true or false")
        return values

    def objects(self, key: str) -> tuple[dict[str, Json], ...]:
        values: list[Any] = self.get(key, [], list, "a list")
        if not all(isinstance(value, dict) for value in values):
            raise self.fault(key, "is not a list of objects")
        return tuple(values)

    def items(self, key: str, read: Callable[[_Fields], _Item], most: int) -> tuple[_Item, ...]:
        values: list[Any] = self.get(key, [], list, "a list")
        if len(values) > most:
            raise self.fault(key, f"has {len(values)} entries; at most {most} are read")
        found = []
        for number, value in enumerate(values):
            if not isinstance(value, dict):
                raise self.fault(f"{key}[{number}]", "is not an object")
            found.append(read(_Fields(value, f"{self.path}{key}[{number}].", self.pack)))
        return tuple(found)
