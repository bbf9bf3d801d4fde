"""Give every public function the packed interface: check all arguments, then call the plain function.

Before::

    function @scale<n: int64>(x: float32[n], factor: float32)
      symbol "scale"
    { ... }

After::

    function @scale<n: int64>(x: float32[n], factor: float32)
    { ... }

    function @__tvm_ffi_scale(self: handle, args: handle, count: int32, result: handle) -> int32
      symbol "__tvm_ffi_scale"
      convention packed
    {
      assert count == 2i32 else TypeError("scale: ...")
      let x_kind: int32 = packed_kind(args, 0i32)
      ...                                             ; kind, dtype, rank, device, sizes, strides, alignment, data;
                                                      ; with a context also that the device is the context's
      let n: int64 = x_size_0
      view x: float32[n] of tensor_data(x_tensor)
      @scale(x, factor)
      return 0i32
    }

Requires: plain host functions. Ensures: what is exported has the packed convention; the plain functions are private
and keep their names, so calls inside the module stay as they are. A result that is a scalar goes into ``result``;
without one ``result`` stays None, as the caller has set it. Functions that launch kernels, themselves or through what
they call, get the context of the packed function, its ``self``, as a last parameter (:mod:`gristmill_launch.contexts`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gristmill.codegen.packed_interface import EXPORT_PREFIX
from gristmill.errors import Diagnostic, UserError
from gristmill.ir.build import call, cast, const, equal, sequence
from gristmill.ir.dtype import BOOL, HANDLE, INT32, INT64, VOID
from gristmill.ir.expr import BufferRef, CallFunction, Expr, Not, Var
from gristmill.ir.functor import substitute
from gristmill.ir.host_interface import CPU_DEVICE_TYPE
from gristmill.ir.memory import Buffer, PointerType
from gristmill.ir.module import CallingConvention, Function, Module
from gristmill.ir.span import place_of
from gristmill.ir.stmt import Bind, Evaluate, Return, Stmt, View
from gristmill.passes.manager import Pass
from gristmill_launch.array_arguments import ArrayArgument, bind_sizes, check_layout, read_array
from gristmill_launch.contexts import with_contexts
from gristmill_launch.messages import Messages
from gristmill_launch.scalar_arguments import read_scalar


@dataclass(frozen=True)
class LowerPackedInterface(Pass):
    """Public functions get the packed interface, which checks its arguments and calls the plain function."""

    device_type: int = CPU_DEVICE_TYPE
    """DLPack's number for the memory that arrays must be in."""

    def run(self, module: Module) -> Module:
        """The module with a packed function after each public plain one.

        Raises UserError: GM0650 for a size that the arguments do not determine, GM0651 for a name that is taken.
        """
        names = {function.name for function in module.functions}
        module, launching = with_contexts(module)
        found: list[Function] = []
        for function in module.functions:
            if not function.is_public or function.facts.convention is not CallingConvention.PLAIN:
                found.append(function)
                continue
            packed_name = f"{EXPORT_PREFIX}{function.facts.symbol}"
            if packed_name in names:
                raise _taken(function, packed_name)
            found.append(function.with_facts(symbol=None))
            found.append(_packed(function, packed_name, self.device_type, function.name in launching))
        return module.with_functions(found)


def _taken(function: Function, name: str) -> UserError:
    return UserError(
        Diagnostic(
            "GM0651",
            f"`{function.name}` is exported as `{name}`, which is the name of another function",
            place_of(function.span),
            hint=f"give the other function a name that does not begin with {EXPORT_PREFIX}",
        )
    )


def _packed(function: Function, name: str, device_type: int, takes_context: bool) -> Function:
    """The packed function that checks arguments for ``function`` and calls it."""
    say = Messages.of(function)
    params = function.params[:-1] if takes_context else function.params
    self_, args, result = (Var(text, HANDLE) for text in ("self", "args", "result"))
    count = Var("count", INT32)
    statements: list[Stmt] = _check_count(say, args, count, len(params))
    device_id: Var | None = None
    if takes_context and any(isinstance(param, Buffer) for param in params):
        device_id = Var("device_id", INT32)
        statements.append(Bind(device_id, call("context_device_id", self_, dtype=INT32)))
    scalars: dict[Var, Var] = {}
    arrays: list[ArrayArgument] = []
    for number, param in enumerate(params):
        kind = Var(f"{param.name}_kind", INT32)
        statements.append(Bind(kind, call("packed_kind", args, const(number, INT32), dtype=INT32)))
        if isinstance(param, Buffer):
            arrays.append(ArrayArgument.of(say, number, param))
            statements += read_array(say, args, arrays[-1], kind, device_type, device_id)
        else:
            scalars[param] = Var(param.name, param.dtype, param.pointer, param.span)
            statements += read_scalar(say, args, number, param, scalars[param], kind)
    binding, variables = bind_sizes(say, function, arrays, scalars)
    statements += binding
    for array in arrays:
        statements += check_layout(say, array)
    if takes_context:
        context = function.params[-1]
        assert isinstance(context, Var)
        variables[context] = self_
    statements += _call(function, arrays, variables, result)
    facts = replace(
        function.facts, symbol=name, convention=CallingConvention.PACKED_HOST, no_alias=False, fast_math=False
    )
    body = sequence(*statements, Return(const(0, INT32), function.span), span=function.span)
    return Function(name, (self_, args, count, result), (), INT32, body, facts, function.span)


def _check_count(say: Messages, args: Var, count: Var, wanted: int) -> list[Stmt]:
    arguments = "1 argument is" if wanted == 1 else f"{wanted or 'no'} arguments are"
    found = [say.check(equal(count, wanted), "TypeError", f"{arguments} expected, not ", count)]
    if wanted:
        there = Not(call("packed_is_null", args, dtype=BOOL))
        found.append(say.check(there, "TypeError", f"{arguments} expected, but their array is a null pointer"))
    return found


def _call(function: Function, arrays: list[ArrayArgument], variables: dict[Var, Var], result: Var) -> list[Stmt]:
    """Make a view of each array, call the plain function, hand its result on."""
    statements: list[Stmt] = []
    views: dict[Buffer, Buffer] = {}
    for array in arrays:
        views[array.param] = _view(array.param, variables)
        source = call("tensor_data", array.tensor, dtype=HANDLE)
        statements.append(View(views[array.param], source, function.span))
    given: list[Expr] = [
        BufferRef(views[param], function.span) if isinstance(param, Buffer) else variables[param]
        for param in function.params
    ]
    value = CallFunction(function.name, tuple(given), function.returns, function.span)
    if function.returns == VOID:
        return [*statements, Evaluate(value, function.span)]
    outcome = Var("outcome", function.returns)
    statements.append(Bind(outcome, value, function.span))
    return [*statements, Evaluate(call("packed_return", result, outcome, dtype=VOID), function.span)]


def _view(param: Buffer, variables: dict[Var, Var]) -> Buffer:
    """The array as the packed function sees it: the parameter's layout, with its own variables for the sizes."""
    return Buffer(
        param.name,
        param.dtype,
        tuple(substitute(size, variables) for size in param.shape),
        Var(f"{param.name}_data", HANDLE, param.data.pointer or PointerType(param.dtype, param.scope)),
        tuple(substitute(stride, variables) for stride in param.strides),
        None if param.offset is None else cast(const(0, INT64), param.offset.dtype),
        param.scope,
        param.alignment,
        param.span,
    )
