"""Compiling a module's functions to Python: each function once for each mode of code in which it is called.

:class:`Program` holds what all functions share: the namespace that generated code runs in, the table of sites, and
which lines belong to which sites. :class:`FunctionWriter` writes one function.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from types import TracebackType
from typing import Any

from gristmill.interp.analysis import functions_that_wait, may_wait, plain_scalars, reductions_over_threads
from gristmill.interp.buffers import tuple_text
from gristmill.interp.definitions import Context, Mode
from gristmill.interp.exchanges import Exchange
from gristmill.interp.expressions import Visit
from gristmill.interp.formats import decode_bfloat16_table, decode_float16_table
from gristmill.interp.lockstep import LockStepWriter
from gristmill.interp.matrices import Element, Tile, alone
from gristmill.interp.memory import Pointer, Tensor
from gristmill.interp.outside import call_extern, call_packed, launch_elsewhere
from gristmill.interp.packed import PACKED_HELPERS
from gristmill.interp.ranges import aligned, disjoint
from gristmill.interp.reports import Site
from gristmill.interp.runtime_reports import AXES
from gristmill.interp.scalar_operations import HELPERS, wrapping_helpers
from gristmill.interp.shapes import Binder
from gristmill.interp.source import Line, Writer, captures
from gristmill.interp.statements import MemoryScalarsNeeded
from gristmill.interp.threads import (
    check_alone,
    check_extent,
    coordinates,
    launch,
    launch_in_lanes,
    unequal_extents,
    unknown_extent,
)
from gristmill.interp.values import Value, value
from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.dtype import SCALARS, DType, parse_dtype
from gristmill.ir.functor import EXPRESSIONS, STATEMENTS, walk
from gristmill.ir.memory import Buffer
from gristmill.ir.module import CallingConvention, Function, Module
from gristmill.ir.node import Node
from gristmill.ir.stmt import BarrierScope
from gristmill.recursion import room_for

_DTYPE = re.compile(r"\bDT_(\w+)\b")
_WAIT = re.compile(r"(^|= |\()yield ")
"""What a line has by which a generator waits: a barrier, an exchange, a call of a generator."""
_FILES = count()
_COMPILER_FRAMES = 9_000


class Ending:
    """How a part of a function ended, where it is not by its end or by a return."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A Python function to be made: its name, its parameters after E and X, its lines."""

    name: str
    params: tuple[str, ...]
    lines: tuple[Line, ...]


class Program:
    """A module prepared for execution. Functions are compiled when they are first needed."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.functions = {function.name: function for function in module.functions}
        self.that_wait = functions_that_wait(module)
        self.sites: list[Site] = []
        self.barriers: dict[int, BarrierScope] = {}
        self.line_sites: dict[str, list[int]] = {}
        self.compiled: dict[tuple[str, Mode], str] = {}
        self.waiting: list[tuple[Function, Mode, str]] = []
        self.lane_functions: dict[tuple[Any, ...], str] = {}
        self.binders: dict[str, Binder] = {}
        self.allocations: dict[Buffer, int] = {}
        self.constants: dict[object, str] = {}
        self.names = count()
        self.namespace: dict[str, Any] = {
            "__builtins__": _BUILTINS,
            **HELPERS,
            **wrapping_helpers(SCALARS),
            **PACKED_HELPERS,
            "aligned": aligned,
            "disjoint": disjoint,
            "AXES": AXES,
            "BARRIERS": self.barriers,
            "Exchange": Exchange,
            "Tile": Tile,
            "MatrixElement": Element,
            "matrix_alone": alone,
            "BREAK": Ending(),
            "CONTINUE": Ending(),
            "launch": launch,
            "launch_in_lanes": launch_in_lanes,
            "coordinates": coordinates,
            "check_alone": check_alone,
            "check_extent": check_extent,
            "unequal_extents": unequal_extents,
            "unknown_extent": unknown_extent,
            "call_extern": call_extern,
            "call_packed": call_packed,
            "launch_elsewhere": launch_elsewhere,
            "data_of": data_of,
        }

    def function(self, name: str, mode: Mode) -> Callable[..., Any]:
        """The compiled function, with all that it calls."""
        wanted = self.request(self.functions[name], mode)
        self.compile_waiting()
        return self.namespace[wanted]  # type: ignore[no-any-return]

    def request(self, function: Function, mode: Mode) -> str:
        """The name that the function will have in this mode."""
        key = (function.name, mode)
        found = self.compiled.get(key)
        if found is None:
            found = self.compiled[key] = f"function{next(self.names)}_{mode.value}"
            self.waiting.append((function, mode, found))
        return found

    def compile_waiting(self) -> None:
        # The writers recurse only as deep as Python's compiler does; its limit is the caller's, which may be low.
        with room_for(_COMPILER_FRAMES):
            while self.waiting:
                function, mode, name = self.waiting.pop()
                for chunk in write_function(self, function, mode, name):
                    self.compile_chunk(chunk)

    def compile_chunk(self, chunk: Chunk) -> None:
        head = f"def {chunk.name}({', '.join(('E', 'X', *chunk.params))}):"
        texts = [head, " F32 = E.cell", *(" " * line.indent + line.text for line in chunk.lines)]
        text = "\n".join(texts) + "\n"
        for match in _DTYPE.finditer(text):
            if match[0] not in self.namespace:
                self.namespace[match[0]] = parse_dtype(match[1])
        if "HALVES[" in text:
            self.namespace["HALVES"] = decode_float16_table()
        if "BFLOATS[" in text:
            self.namespace["BFLOATS"] = decode_bfloat16_table()
        file = f"<gristmill executor {next(_FILES)}>"
        self.line_sites[file] = [-1, -1, *(line.site for line in chunk.lines)]
        # All of the text is ours: names are numbered, and what the user wrote is in the table of constants.
        exec(compile(text, file, "exec"), self.namespace)

    def site(self, found: Site) -> int:
        self.sites.append(found)
        return len(self.sites) - 1

    def constant(self, found: object) -> str:
        """The name of a constant that is not a number."""
        name = self.constants.get(found)
        if name is None:
            name = self.constants[found] = f"CONSTANT{len(self.constants)}"
            self.namespace[name] = found
        return name

    def binder(self, function: Function) -> Binder:
        found = self.binders.get(function.name)
        if found is None:
            found = self.binders[function.name] = Binder(function)
        return found

    def sites_of(self, traceback: TracebackType | None) -> list[int]:
        """The sites of the generated lines that an exception went through, outermost first."""
        found = []
        while traceback is not None:
            lines = self.line_sites.get(traceback.tb_frame.f_code.co_filename)
            if lines is not None and 0 < traceback.tb_lineno <= len(lines):
                site = lines[traceback.tb_lineno - 1]
                if site >= 0:
                    found.append(site)
            traceback = traceback.tb_next
        return found


_BUILTINS = {
    found.__name__: found for found in (abs, bool, dict, enumerate, float, int, len, list, max, min, range, set, zip)
}


def data_of(argument: Tensor | Pointer) -> Pointer:
    """The data pointer of a buffer argument."""
    return argument.pointer if isinstance(argument, Tensor) else argument


def write_function(program: Program, function: Function, mode: Mode, name: str) -> list[Chunk]:
    """The Python functions for one function of the module."""
    scalars = plain_scalars(function)
    try:
        return FunctionWriter(program, function, mode, scalars).chunks_for(name)
    except MemoryScalarsNeeded:
        return FunctionWriter(program, function, mode, frozenset()).chunks_for(name)


def _zero(dtype: DType) -> str:
    """The text of a type's zero; of a handle, null."""
    if dtype.is_handle:
        return "None"
    element = "0.0" if dtype.is_float else "0"
    return f"[{element}] * {dtype.lanes}" if dtype.is_vector else element


class FunctionWriter(LockStepWriter, over=(*EXPRESSIONS, *STATEMENTS)):
    """Writes one function."""

    def __init__(self, program: Program, function: Function, mode: Mode, scalars: frozenset[Buffer]) -> None:
        self.program = program
        self.function = function
        self.scalars = scalars
        self.that_wait = program.that_wait
        self.over_threads = reductions_over_threads(function)
        self.writer = Writer()
        self.strand = "X"
        self.span = function.span
        self.variables = {}
        self.names_of = {}
        self.chunks: list[Chunk] = []
        kernel = function.facts.convention is CallingConvention.DEVICE_KERNEL
        axes = function.facts.launch.axes if kernel and function.facts.launch is not None else ()
        self.context = Context(mode, axes=axes, ends_thread=kernel)
        self.has_threads = any(
            isinstance(node, s.DeviceRegion)
            or (isinstance(node, s.For) and node.kind in (s.LoopKind.THREAD, s.LoopKind.PARALLEL))
            for node in walk(function.body)
        )
        # Only a generator can wait for other threads; where nothing waits a plain function is faster.
        self.is_generator = mode is Mode.DEVICE and may_wait(function.body, program.that_wait)

    def chunks_for(self, name: str) -> list[Chunk]:
        """The Python functions: parts first, the function itself last."""
        params = []
        buffers: list[tuple[Buffer, str]] = []
        scalars = []
        for param in self.function.params:
            if isinstance(param, Buffer):
                argument = self.writer.fresh("b")
                buffers.append((param, argument))
                params.append(argument)
            else:
                argument = self.writer.fresh("v")
                self.variables[param] = value(argument, param.dtype)
                params.append(argument)
                scalars.append(argument)
        if self.has_threads and self.context.mode is Mode.DEVICE:
            self.context.coordinates = tuple(self.writer.fresh("k") for _ in AXES)
            self.writer.emit(f"{', '.join(self.context.coordinates)} = coordinates(X)")
        if self.is_generator:
            self.writer.emit("if False: yield")
        self.drive(self.open_arguments(buffers, scalars))
        self.drive(self.run_statement(self.function.body))
        if self.function.returns_value:
            self.writer.emit(f"return {_zero(self.function.returns)}")
        self.chunks.append(Chunk(name, tuple(params), tuple(self.writer.lines)))
        return self.chunks

    def open_arguments(self, buffers: list[tuple[Buffer, str]], scalars: list[str]) -> Visit:
        """Bind the sizes, open the buffers."""
        function = self.function
        if not buffers:
            return
        binder = self.constant(self.program.binder(function))
        sizes = []
        for size in function.sizes:
            name = self.writer.fresh("v")
            sizes.append(name)
            self.variables[size] = Value(name, size.dtype, 0, 0, size.dtype.maximum)
        target = f"{', '.join(sizes)}, = " if sizes else ""
        arguments = tuple_text(argument for _, argument in buffers)
        self.writer.emit(f"{target}{binder}.bind({arguments}, {tuple_text(scalars)}, E.caller())")
        for buffer, argument in buffers:
            pointer = self.writer.fresh("v")
            self.writer.emit(f"{pointer} = data_of({argument})")
            self.variables[buffer.data] = Value(pointer, buffer.data.dtype)
        for buffer, _ in buffers:
            site = self.site(buffer, buffer.name)
            yield from self.define(buffer, self.variables[buffer.data].text, site, private=False)

    # What the writers ask for -----------------------------------------------------------------------------------------

    def site(self, node: Node, what: str = "") -> int:
        span = getattr(node, "span", None) or self.span
        return self.program.site(Site(self.function.name, span, what, self.context.opened))

    def constant(self, found: object) -> str:
        return self.program.constant(found)

    def lane_function(
        self, key: tuple[Any, ...], dtypes: list[DType], build: Callable[[Any, list[Value]], Value]
    ) -> str:
        found = self.program.lane_functions.get(key)
        if found is None:
            found = self.program.lane_functions[key] = f"lanes{next(self.program.names)}"
            outer, strand = self.writer, self.strand
            self.writer, self.strand = Writer(), "X"
            operands = [value(self.writer.fresh("v"), dtype) for dtype in dtypes]
            result = self.rounded(build(self, operands))
            self.writer.emit(f"return {result.text}")
            params = tuple(operand.text for operand in operands)
            self.chunks.append(Chunk(found, params, tuple(self.writer.lines)))
            self.writer, self.strand = outer, strand
        return found

    def function_of(self, lines: list[Line], params: list[str], generator: bool = False) -> str:
        name = f"part{next(self.program.names)}"
        head = [Line(1, "if False: yield")] if generator else []
        self.chunks.append(Chunk(name, tuple(params), (*head, *lines)))
        return name

    def part(self, lines: list[Line], before: int, result: str) -> str:
        ending = [] if result == "None" else [Line(1, f"return {result}")]
        taken = captures([*lines, *ending], before)
        name = self.function_of([*lines, *ending], taken)
        call = f"{name}(E, {', '.join(('X', *taken))})"
        waits = any(_WAIT.search(line.text) for line in lines)
        return f"(yield from {call})" if waits else call

    def call_function(self, node: e.CallFunction, args: list[str]) -> Value:
        callee = self.program.functions[node.function]
        mode = self.context.mode
        site = self.site(node, callee.name)
        name = self.program.request(callee, mode)
        call = f"{name}(E, {', '.join((self.strand, *args))})"
        if mode is Mode.DEVICE and callee.name in self.that_wait:
            call = f"(yield from {call})"
        self.writer.emit(f"E.enter({site})")
        found = self.writer.fresh("t")
        self.writer.emit(f"{found} = {call}", site)
        self.writer.emit("E.depth -= 1")
        return value(found, node.type)

    def tensor_text(self, buffer: Buffer, site: int) -> str:
        names = self.names_of[buffer]
        shape = "".join(f"{size.text}, " for size in names.sizes)
        strides = "".join(f"{stride.text}, " for stride in names.strides)
        pointer = self.variables[buffer.data].text
        return f"E.tensor({pointer}, DT_{buffer.dtype}, ({shape}), ({strides}), {names.offset or 0}, {site})"

    def allocation_number(self, buffer: Buffer) -> int:
        return self.program.allocations.setdefault(buffer, len(self.program.allocations))

    def may_be_shared_later(self, buffer: Buffer) -> bool:
        return self.has_threads

    def barrier_site(self, node: s.Barrier) -> int:
        site = self.site(node)
        self.program.barriers[site] = node.scope
        return site

    def launch_text(self, node: s.Launch, args: list[str], extents: list[str], dynamic: str, site: int) -> str:
        kernel = self.program.functions[node.kernel]
        if kernel.facts.declaration:
            sizes = "".join(f"{extent}, " for extent in extents)
            called = self.program.constant(kernel.name)
            return f"launch_elsewhere(E, {site}, {called}, {tuple_text(args)}, ({sizes}), {dynamic})"
        name = self.program.request(kernel, Mode.DEVICE)
        waits = kernel.name in self.that_wait
        entries = ", ".join(
            f"AXES[{AXES.index(axis)}]: {extent}" for axis, extent in zip(node.axes, extents, strict=True)
        )
        taken = "".join(f"{arg}, " for arg in args)
        return (
            f"launch(E, {name}, ({taken}), {{{entries}}}, {site}, {self.strand}, "
            f"{'BARRIERS' if waits else None}, {dynamic})"
        )
