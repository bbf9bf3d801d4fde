"""The body of one function."""

from __future__ import annotations

from gristmill_spirv.context import FunctionContext
from gristmill_spirv.expressions import Expressions
from gristmill_spirv.statements import Statements


def write_body(context: FunctionContext) -> None:
    """Write the statements of a function whose parameters are known, and put it into the module."""
    expressions, statements = Expressions(context), Statements(context)
    context.evaluate, context.execute = expressions.visit, statements.visit
    statements.visit(context.function.body)
    statements.finish()
    context.writer.finish()
