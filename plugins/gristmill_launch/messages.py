"""What a packed function says when an argument is wrong: one form for all messages.

Each names the function, the argument with its number (from 1), what is expected and what was given with its value, and
ends with the whole signature on a line of its own::

    blur_rows: argument `dst` (number 2) has size 7 in dimension 1, but `w` is 8 (from dimension 1 of `src`)
      signature: blur_rows(src: Buffer((h, w), float32), dst: Buffer((h, w), float32))
"""

from __future__ import annotations

from dataclasses import dataclass

from gristmill.codegen.packed_interface import signature_text
from gristmill.ir.build import call, const, equal
from gristmill.ir.dtype import HANDLE, INT32
from gristmill.ir.expr import Expr, Var
from gristmill.ir.host_interface import CPU_DEVICE_TYPE, DEVICE_TYPE_NAMES, OWN_DEVICE_TYPES
from gristmill.ir.module import Function
from gristmill.ir.span import Span
from gristmill.ir.stmt import Assert, Stmt

Part = str | Expr


@dataclass(frozen=True, slots=True)
class Messages:
    """Makes the checks of one function; ``name`` and ``signature`` are those of the public function."""

    name: str
    signature: str
    span: Span | None

    @classmethod
    def of(cls, function: Function) -> Messages:
        return cls(function.facts.symbol or function.name, signature_text(function), function.span)

    def check(self, condition: Expr, kind: str, *parts: Part) -> Stmt:
        """Raise ``kind`` with the parts as message, between the function's name and its signature, unless it holds."""
        # Texts stay apart: a code generator keeps each of them once, and the signature is in every message.
        message = (f"{self.name}: ", *parts, f"\n  signature: {self.signature}")
        return Assert(condition, kind, message, self.span)

    def argument(self, number: int, name: str) -> str:
        """How messages name an argument; ``number`` counts from 0."""
        return f"argument `{name}` (number {number + 1})"

    def wrong_kind(self, accepted: Expr, args: Var, number: int, name: str, wanted: str) -> Stmt:
        """TypeError unless ``accepted``: what is wanted, and what kind of value argument ``number`` of ``args`` is."""
        given = call("packed_kind_text", args, const(number, INT32), dtype=HANDLE)
        must = f" must be {wanted}, and "
        return self.check(accepted, "TypeError", self.argument(number, name), must, given, " was given")

    def wrong_dtype(self, accepted: Expr, tensor: Var, argument: str, wanted: str) -> Stmt:
        """TypeError unless ``accepted``: the dtype wanted, and the one that the elements of ``tensor`` have."""
        given = call("tensor_dtype_text", tensor, dtype=HANDLE)
        return self.check(accepted, "TypeError", argument, " has ", given, f", but {wanted} is expected")

    def wrong_device(self, accepted: Expr, device: Var, argument: str, wanted: int) -> Stmt:
        """ValueError unless ``accepted``: the kind of memory wanted, and the one given."""
        known = {number: name for number, name in OWN_DEVICE_TYPES.items() if number == wanted} | DEVICE_TYPE_NAMES
        place = known.get(wanted, f"device type {wanted}")
        names = ", ".join(f"{number} {name}" for number, name in sorted(known.items()))
        # Arrays of the host are passed to a device by those who begin.
        copied = "" if wanted == CPU_DEVICE_TYPE else "; the device's `array(values)` makes a copy there"
        end = f" (of {names}), but {place} memory is expected{copied}"
        return self.check(accepted, "ValueError", argument, " is in memory of device type ", device, end)

    def wrong_device_number(self, array: Expr, kernels: Expr, argument: str, device_type: int) -> Stmt:
        """ValueError unless an array is of the device that the kernels are loaded on, of several of one kind."""
        kind = OWN_DEVICE_TYPES.get(device_type) or DEVICE_TYPE_NAMES.get(device_type, f"type {device_type}")
        given = (argument, f" is an array of the {kind} device ", array)
        where = (f", but the function's kernels are loaded on the {kind} device ", kernels)
        remedy = (
            "; that device's `array(values)` makes a copy there, and gristmill.load(..., device=...) loads on another"
        )
        return self.check(equal(array, kernels), "ValueError", *given, *where, remedy)
