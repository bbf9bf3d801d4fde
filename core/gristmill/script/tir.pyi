from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

# What editors and type checkers see of the kernel language. docs/language.md explains each name.

F = TypeVar("F", bound=Callable[..., Any])
Dimension = int | str | Any

class Kernel:
    """A function marked ``@T.prim_func``: built by ``gristmill build``, not called from Python."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

@overload
def prim_func(function: F, /) -> F: ...
@overload
def prim_func(*, private: bool = ..., s_tir: bool = ..., check_well_formed: bool = ...) -> Callable[[F], F]: ...
@overload
def macro(function: F, /) -> F: ...
@overload
def macro(*, hygienic: bool = ...) -> Callable[[F], F]: ...

# Types: annotations of parameters and names, and conversions when called.
Buffer: Any
handle: Any
let: Any
bool: Any
int8: Any
int16: Any
int32: Any
int64: Any
uint8: Any
uint16: Any
uint32: Any
uint64: Any
float16: Any
bfloat16: Any
float32: Any
float64: Any

# Loops.
def grid(*extents: Any) -> Any:
    """Loops one inside the other: ``for i, j in T.grid(n, m):``."""

def serial(start: Any, stop: Any = ..., step: int = ..., *, annotations: dict[str, Any] | None = ...) -> Any:
    """Iterations one after the other, as ``range``; ``annotations``: unroll, vector_width, vectorize."""

def parallel(start: Any, stop: Any = ..., step: int = ..., *, annotations: dict[str, Any] | None = ...) -> Any:
    """Iterations in any order, also at the same time."""

def vectorized(start: Any, stop: Any = ..., step: int = ..., *, annotations: dict[str, Any] | None = ...) -> Any:
    """Iterations as the lanes of vectors; a constant number of them."""

def unroll(start: Any, stop: Any = ..., step: int = ..., *, annotations: dict[str, Any] | None = ...) -> Any:
    """Iterations one after the other, the body repeated in the code."""

def thread_binding(start: Any, stop: Any = ..., thread: str = ..., *, annotations: dict[str, Any] | None = ...) -> Any:
    """One iteration a thread along an axis of the launch: ``T.thread_binding(64, thread="threadIdx.x")``."""

def launch_thread(thread: Any, extent: Any) -> Any:
    """The rest of the statement list runs on so many threads along the axis; the value is the number of the thread."""

def env_thread(thread: str) -> Any:
    """An axis of a launch, for ``T.launch_thread``."""

# Memory.
def alloc_buffer(shape: Sequence[Any] | Any, dtype: Any = ..., *, scope: str = ..., align: int = ...) -> Any:
    """New memory, not initialised, until the statement list ends."""

def alloc_shared(shape: Sequence[Any] | Any, dtype: Any = ...) -> Any:
    """New memory shared by the threads of a block."""

def alloc_local(shape: Sequence[Any] | Any, dtype: Any = ...) -> Any:
    """New memory of one thread."""

def decl_buffer(
    shape: Sequence[Any] | Any,
    dtype: Any = ...,
    data: Any = ...,
    strides: Sequence[Any] | None = ...,
    elem_offset: Any = ...,
    scope: str = ...,
    align: int = ...,
) -> Any:
    """A view of memory that exists (``data=A.data``); without ``data`` new memory."""

def match_buffer(source: Any, shape: Sequence[Any] | Any = ..., dtype: Any = ..., **layout: Any) -> Any:
    """The buffer behind a parameter of type ``T.handle``; or a part of a buffer inside a block."""

def address_of(element: Any) -> Any:
    """A pointer to an element: ``T.address_of(A[i])``."""

# Values.
def cast(value: Any, dtype: Any) -> Any:
    """The value in another type."""

def reinterpret(dtype: Any, value: Any) -> Any:
    """The bits of the value as another type of the same width."""

def min(a: Any, b: Any, *more: Any) -> Any:
    """The least operand; of a NaN and a number, the number."""

def max(a: Any, b: Any, *more: Any) -> Any:
    """The greatest operand; of a NaN and a number, the number."""

def if_then_else(condition: Any, a: Any, b: Any) -> Any:
    """``a`` if the condition is true, else ``b``; only the one chosen is evaluated."""

def Select(condition: Any, a: Any, b: Any) -> Any:
    """``a`` where the condition is true, else ``b``; both are evaluated, vectors lane by lane."""

def truncdiv(a: Any, b: Any) -> Any:
    """The quotient of integers, rounded towards zero."""

def truncmod(a: Any, b: Any) -> Any:
    """The remainder of ``truncdiv``, with the sign of ``a``."""

def ceildiv(a: Any, b: Any) -> Any:
    """``(a + b - 1) // b``."""

def Ramp(base: Any, stride: Any, lanes: int) -> Any:
    """The vector ``base, base + stride, ...``."""

def Broadcast(value: Any, lanes: int) -> Any:
    """A vector with the value in every lane."""

def Shuffle(vectors: Sequence[Any], indices: Sequence[int]) -> Any:
    """Chosen lanes of the vectors put one after the other."""

# Blocks, barriers, calls.
def block(name: str = ...) -> Any:
    """A unit of computation with named axes: ``with T.block("update"):``."""

def init() -> Any:
    """What runs before the first iteration of a block's reduce axes: ``with T.init():``."""

def tvm_storage_sync(scope: str) -> None:
    """A barrier of the threads of a block ("shared", "global") or of a warp ("warp")."""

def syncthreads() -> None:
    """``T.tvm_storage_sync("shared")``."""

def call_extern(dtype: Any, symbol: str, *args: Any) -> Any:
    """A call of a C symbol that the manifest declares."""

def call_packed(name: str, *args: Any, dtype: Any = ...) -> Any:
    """A call of a function registered with TVM FFI."""

def func_attr(attributes: dict[str, Any]) -> None:
    """Facts of the function: global_symbol, no_alias, fast_math, release_gil, target."""

axis: Any

# All others: mathematics, bits, the classic spellings.
def __getattr__(name: str) -> Any: ...
