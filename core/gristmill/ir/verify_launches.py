"""The verifier's part for launches and barriers. Rules: :mod:`gristmill.ir.verify`."""

from __future__ import annotations

from gristmill.errors import Diagnostic
from gristmill.ir import stmt as s
from gristmill.ir.module import CallingConvention, Function, Module
from gristmill.ir.verify_expressions import ExpressionVerifier
from gristmill.ir.verify_walk import Use


class LaunchVerifier(ExpressionVerifier):
    """Checks launches against their kernels."""

    def __init__(self, module: Module, function: Function, diagnostics: list[Diagnostic]) -> None:
        super().__init__(module, function, diagnostics)
        self.begins_launch = False
        """Whether the function has a launch or a device region in it."""

    def barrier(self, node: s.Barrier) -> None:
        if self.function.facts.convention is CallingConvention.PACKED_HOST:
            self.report("GM0444", "a barrier cannot stand in a function of the packed host interface", node)

    def launch(self, node: s.Launch) -> None:
        types = [self.expression(arg, Use.ARGUMENT) for arg in node.args]
        for axis, extent in zip(node.axes, node.extents, strict=False):
            self.index(extent, f"the extent of {axis.value}")
        if node.dynamic_shared is not None:
            self.index(node.dynamic_shared, "the size of dynamic shared memory")
        if node.context is not None and not (dtype := self.expression(node.context)).is_handle:
            self.report("GM0443", f"the context of the launch of `{node.kernel}` is {dtype}, not a handle", node)
        self.begins_launch = True
        if self.is_device_code:
            self.report("GM0444", "a kernel cannot be launched by code of a device", node)
        kernel = self.functions.get(node.kernel)
        if kernel is None or kernel.facts.convention is not CallingConvention.DEVICE_KERNEL:
            self.report("GM0443", f"`{node.kernel}` is launched and is no kernel of the module", node)
            return
        wanted = kernel.facts.launch
        if wanted is not None and node.axes != wanted.axes:
            names = [", ".join(axis.value for axis in axes) or "none" for axes in (wanted.axes, node.axes)]
            self.report("GM0443", f"`{node.kernel}` takes the axes {names[0]}; the launch gives {names[1]}", node)
        if len(node.axes) != len(node.extents):
            message = f"the launch of `{node.kernel}` has {len(node.axes)} axes and {len(node.extents)} extents"
            self.report("GM0443", message, node)
        if wanted is not None and wanted.dynamic_shared != (node.dynamic_shared is not None):
            which = "needs" if wanted.dynamic_shared else "takes no"
            self.report("GM0443", f"`{node.kernel}` {which} a size of dynamic shared memory", node)
        self.arguments(node, kernel, node.args, types)
