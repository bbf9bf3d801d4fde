"""Call library functions for the mathematics that the target has no instruction for.

Before::

    y = exp(x)

After::

    y = math_exp_float32(x)
    ...
    function @math_exp_float32(x: float32) -> float32 { ... }

Operations that are neither native nor in the library stay; the code generator says that it does not support them.

Ensures: the functions that are called are in the module, once each, private.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gristmill.ir.dtype import FLOAT64
from gristmill.ir.expr import Call, CallFunction, Expr
from gristmill.ir.functor import Mutator, walk
from gristmill.ir.module import Function, Module
from gristmill.ir.op import DOT_PRODUCTS, MATHEMATICS
from gristmill.mathlib import function_for
from gristmill.passes.manager import Pass
from gristmill.plugin.protocols import PassContext

_MATHEMATICS = frozenset(op.name for op in (*MATHEMATICS, *DOT_PRODUCTS))


@dataclass(frozen=True)
class LowerMathematics(Pass):
    """Call library functions for the mathematics that the target has no instruction for."""

    native: tuple[str, ...] = ()
    """Names of operations that the code generator emits itself."""
    float64: bool = True
    """Whether the target has float64, which the library then uses for fma of float32."""

    @classmethod
    def values_for(cls, context: PassContext) -> Mapping[str, Any]:
        capabilities = context.capabilities
        native = tuple(sorted(capabilities.native_operations & _MATHEMATICS))
        return {"native": native, "float64": FLOAT64 in capabilities.dtypes}

    def run(self, module: Module) -> Module:
        lowering = _Lowering(frozenset(self.native), self.float64, {function.name for function in module.functions})
        functions = [
            function.with_body(lowering.visit(function.body)) if lowering.concerns(function) else function
            for function in module.functions
        ]
        return module.with_functions([*functions, *lowering.added()])


class _Lowering(Mutator):
    def __init__(self, native: frozenset[str], float64: bool, names: set[str]) -> None:
        super().__init__()
        self.native = native
        self.float64 = float64
        self.names = names
        self.library: dict[tuple[str, object], Function | None] = {}

    def concerns(self, function: Function) -> bool:
        """Whether there is anything to lower, found without making new nodes."""
        return any(isinstance(node, Call) and self.is_lowered(node) for node in walk(function.body))

    def is_lowered(self, node: Call) -> bool:
        return node.op.name in _MATHEMATICS and node.op.name not in self.native

    def added(self) -> list[Function]:
        return [function for function in self.library.values() if function is not None]

    def visit_Call(self, node: Call) -> Expr:
        node = self.generic(node)
        if not self.is_lowered(node):
            return node
        function = self.function(node)
        return node if function is None else CallFunction(function.name, node.args, node.type, node.span)

    def function(self, node: Call) -> Function | None:
        key = (node.op.name, node.args[0].dtype)
        if key not in self.library:
            found = function_for(*key, float64=self.float64)
            if found is not None:
                name, number = found.name, 1
                # The user may have a function of that name.
                while name in self.names:
                    number += 1
                    name = f"{found.name}_{number}"
                self.names.add(name)
                found = found if name == found.name else replace(found, name=name)
            self.library[key] = found
        return self.library[key]
