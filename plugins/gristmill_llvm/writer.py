"""Writes LLVM IR as text: functions block by block, and the module around them.

Text is written rather than built through llvmlite's builder because it is six times faster per instruction. The
writer gives out names, keeps every block terminated exactly once, and puts stack slots into the entry block.
"""

from __future__ import annotations

from collections.abc import Sequence

LIKELY = (2000, 1)
UNLIKELY = (1, 2000)


def quoted(name: str) -> str:
    """A global name as LLVM reads it, whatever characters it has."""
    return '"' + "".join(map(_ESCAPED.__getitem__, name.encode())) + '"'


_ESCAPED = tuple(chr(byte) if 32 <= byte < 127 and byte not in (34, 92) else f"\\{byte:02X}" for byte in range(256))
"""Each byte as it stands in a quoted text."""


class ModuleWriter:
    """The text of one module: target, constants, declarations, functions, attributes, metadata.

    Parts come out in the order in which they were asked for first, so equal input gives equal text.
    """

    def __init__(self, triple: str, source_name: str, attributes: str) -> None:
        self.head = f'source_filename = {quoted(source_name)}\ntarget triple = "{triple}"\n'
        self.attributes = attributes
        self.globals: dict[str, str] = {}
        self.declarations: dict[str, str] = {}
        self.functions: list[str] = []
        self.metadata_nodes: list[str] = []
        self.shared_metadata: dict[str, str] = {}
        self.strings: dict[bytes, str] = {}
        self.shared: dict[str, str] = {}

    def string(self, text: str) -> str:
        """The name of a constant with the text in UTF-8 and a NUL after it; equal texts are kept once."""
        data = text.encode("utf-8", "surrogatepass") + b"\0"
        name = self.strings.get(data)
        if name is None:
            name = self.strings[data] = self.define_bytes(f"@text.{len(self.strings)}", data)
        return name

    def define_bytes(self, name: str, data: bytes) -> str:
        """Define a constant of these bytes under a name that begins with ``@``."""
        body = "".join(map(_ESCAPED.__getitem__, data))
        return self.define_global(name, f'private unnamed_addr constant [{len(data)} x i8] c"{body}", align 1')

    def define_global(self, name: str, definition: str) -> str:
        """Define a global variable, unless it is defined already. ``name`` begins with ``@``."""
        self.globals.setdefault(name, definition)
        return name

    def shared_global(self, stem: str, definition: str) -> str:
        """The name of a private global with this definition; equal definitions are kept once."""
        name = self.shared.get(definition)
        if name is None:
            name = f"@{stem}.{len(self.shared)}"
            self.shared[definition] = name
            self.globals[name] = definition
        return name

    def declare(self, name: str, result: str, parameters: str) -> str:
        """Declare a function (once); gives its name with ``@``."""
        reference = f"@{name}"
        if reference not in self.declarations:
            self.declarations[reference] = f"declare {result} {reference}({parameters})"
        return reference

    def metadata(self, node: str, distinct: bool = False) -> str:
        """A metadata node; ``{self}`` in a distinct node stands for its own name."""
        if not distinct and node in self.shared_metadata:
            return self.shared_metadata[node]
        name = f"!{len(self.metadata_nodes)}"
        text = node.replace("{self}", name)
        self.metadata_nodes.append(f"{name} = {'distinct ' if distinct else ''}{text}")
        if not distinct:
            self.shared_metadata[node] = name
        return name

    def text(self) -> str:
        parts = [self.head]
        parts += [f"{name} = {definition}" for name, definition in self.globals.items()]
        parts += self.functions
        parts += self.declarations.values()
        parts.append(f"attributes #0 = {{ {self.attributes} }}")
        parts += self.metadata_nodes
        return "\n".join(parts) + "\n"


class FunctionWriter:
    """The text of one function's body. Blocks are begun with :meth:`block` and ended by a branch or a return."""

    def __init__(self, module: ModuleWriter) -> None:
        self.module = module
        self.slots: list[str] = []
        self.lines: list[str] = []
        self.label = "entry"
        self.terminated = False
        self._values = 0
        self._labels = 0

    def value(self, instruction: str) -> str:
        """Write an instruction that has a result, and give the result's name."""
        self._values += 1
        name = f"%v{self._values}"
        self.effect(f"{name} = {instruction}")
        return name

    def effect(self, instruction: str) -> None:
        """Write an instruction for its effect."""
        assert not self.terminated, "an instruction after the end of a block"
        self.lines.append(f"  {instruction}")

    def slot(self, type_text: str, align: int = 0) -> str:
        """Stack memory that lives until the function returns; allocated in the entry block, where LLVM promotes it."""
        name = f"%s{len(self.slots) + 1}"
        self.slots.append(f"  {name} = alloca {type_text}" + (f", align {align}" if align else ""))
        return name

    def new_label(self, purpose: str) -> str:
        self._labels += 1
        return f"{purpose}.{self._labels}"

    def block(self, label: str) -> None:
        """Begin a block; where the one before has no end yet, it falls through into this one."""
        if not self.terminated:
            self.branch(label)
        self.lines.append(f"{label}:")
        self.label = label
        self.terminated = False

    def branch(self, label: str, metadata: str = "") -> None:
        self._end(f"br label %{label}{metadata}")

    def branch_if(
        self, condition: str, then: str, otherwise: str, weights: tuple[int, int] | None = None, metadata: str = ""
    ) -> None:
        """Branch on an ``i1``; ``weights`` say how often each way is taken."""
        profile = ""
        if weights is not None:
            node = self.module.metadata(f'!{{!"branch_weights", i32 {weights[0]}, i32 {weights[1]}}}')
            profile = f", !prof {node}"
        self._end(f"br i1 {condition}, label %{then}, label %{otherwise}{profile}{metadata}")

    def ret(self, value: str = "void") -> None:
        """Return a typed operand, or nothing."""
        self._end(f"ret {value}")

    def phi(self, type_text: str, incoming: Sequence[tuple[str, str]]) -> str:
        """The value that comes with the block control came from: pairs of (operand, label)."""
        pairs = ", ".join(f"[ {value}, %{label} ]" for value, label in incoming)
        return self.value(f"phi {type_text} {pairs}")

    def _end(self, instruction: str) -> None:
        self.effect(instruction)
        self.terminated = True

    def text(self, head: str) -> str:
        """The whole definition, with ``head`` as its first line up to the brace."""
        assert self.terminated, "a function whose last block has no end"
        return "\n".join([f"{head} {{", "entry:", *self.slots, *self.lines, "}"])
