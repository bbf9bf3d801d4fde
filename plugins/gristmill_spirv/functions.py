"""The body of one function."""

from __future__ import annotations

from gristmill_spirv.context import FunctionContext
from gristmill_spirv.expressions import Expressions
from gristmill_spirv.statements import Statements


def write_body(context: FunctionContext, condition: int | None = None) -> None:
    """Write the statements of a function whose parameters are known, and put it into the module.

    With a condition they run only where it holds.
    """
    expressions, statements = Expressions(context), Statements(context)
    context.evaluate, context.execute = expressions.visit, statements.visit
    body = context.function.body
    if condition is None:
        statements.visit(body)
    else:
        context.writer.selection(condition, lambda: statements.visit(body))
    statements.finish()
    context.writer.finish()
