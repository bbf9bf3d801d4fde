"""One reading: the files of a kernel module, their constants and functions, and the IR module they make."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gristmill.errors import InternalError, Note, Place, suggestion
from gristmill.ir.dtype import DType
from gristmill.ir.module import Extern, Module
from gristmill.script.constants import check_params, constant_of
from gristmill.script.context import Context
from gristmill.script.decorators import Role, role_of
from gristmill.script.files import Definition, File, gather
from gristmill.script.functions import lower_function, sign
from gristmill.script.imports import check_imports
from gristmill.script.problems import Mistake, Problems, Reported, mistake
from gristmill.script.reader import read_tree
from gristmill.script.source import Source
from gristmill.script.values import Callee, ClassNamespace, Value

ParamValue = int | float | bool | str | tuple["ParamValue", ...]
ResolveImport = Callable[[str, int, str], "tuple[str, str] | None"]
"""(module name without dots, level, importing file) -> (file, text), or None where the project has no such module."""


@dataclass(slots=True)
class Project:
    """The state of one reading; made new for each."""

    dialect: str
    params: Mapping[str, ParamValue]
    externs: Mapping[str, str]
    resolve_import: ResolveImport | None
    problems: Problems = field(default_factory=Problems)
    files: dict[str, File] = field(default_factory=dict)
    callees: dict[tuple[str, str, str], Callee] = field(default_factory=dict)
    names: dict[str, Callee] = field(default_factory=dict)
    """Functions of the module by the name they have in it."""
    deciding: set[tuple[str, str, str]] = field(default_factory=set)
    """Functions whose decorators are being read."""
    order: list[Callee] = field(default_factory=list)
    used_externs: dict[str, str] = field(default_factory=dict)
    main: str = ""

    # Files ------------------------------------------------------------------------------------------------------------

    def read(self, name: str, text: str) -> File:
        """Read a file once. Raises Mistake if Python cannot read it."""
        found = self.files.get(name)
        if found is None:
            source = Source(name, text)
            self.problems.sources[name] = source.text
            found = File(source, read_tree(source))
            gather(found)
            self.files[name] = found
            check_imports(self, found)
        return found

    # Functions --------------------------------------------------------------------------------------------------------

    def callee_of(self, file: File, name: str, definition: Definition, context: Context, owner: str = "") -> Callee:
        """The function that a definition makes; the same object every time."""
        key = (file.name, owner, name)
        found = self.callees.get(key)
        if found is not None:
            return found
        node = definition.node
        inner = Context(self, file, None)
        if not isinstance(node, ast.FunctionDef):
            assert isinstance(node, ast.AsyncFunctionDef)
            raise inner.mistake(
                "GM0231",
                file.source.name_place(node),
                f"`{name}` is an async function, which a kernel cannot be",
                label="async",
                hint=f"write `def {name}(...)`",
            )
        if key in self.deciding:
            raise inner.mistake(
                "GM0221",
                node.decorator_list[0],
                f"`{name}` is the function itself, which cannot be its own decorator",
                label="not a decorator of kernels",
                hint="give the function another name than what is imported",
            )
        self.deciding.add(key)
        try:
            role = role_of(inner, node)
        finally:
            self.deciding.discard(key)
        found = Callee(name, file, node, role is Role.PUBLIC, role is Role.MACRO, owner)
        self.callees[key] = found
        return found

    def method_of(self, context: Context, owner: ClassNamespace, node: ast.Attribute) -> Value:
        """``Module.function``."""
        definitions = owner.file.classes.get(owner.name, {})
        definition = definitions.get(node.attr)
        if definition is None:
            raise context.mistake(
                "GM0284",
                node,
                f"the module `{owner.name}` has no `{node.attr}`",
                label="not known",
                hint=suggestion(node.attr, [*definitions], f"it has {', '.join(definitions) or 'no functions'}"),
            )
        if definition.kind == "function":
            return self.callee_of(owner.file, node.attr, definition, context, owner.name)
        return constant_of(self, owner.file, node.attr, definition, context, node)

    def sign(self, callee: Callee) -> None:
        """Read a function's signature, and put it in line to be read. Raises Reported if the signature is wrong."""
        if callee.state == "wrong":
            raise Reported
        if callee.state != "new":
            return
        callee.state = "signing"
        context = Context(self, callee.file, callee)
        try:
            sign(context, callee)
        except (Mistake, Reported) as problem:
            callee.state = "wrong"
            self.problems.add(problem)
            raise Reported from None
        callee.context = context
        callee.state = "signed"
        self.order.append(callee)
        self.name_of(callee)

    def name_of(self, callee: Callee) -> str:
        """The name of a function in the module: its own, or one made unique if another function has that."""
        for name, other in self.names.items():
            if other is callee:
                return name
        name, count = callee.name, 0
        while name in self.names:
            count += 1
            name = f"{callee.name}_{count}"
        self.names[name] = callee
        return name

    def result_of(self, context: Context, call: ast.Call, callee: Callee) -> DType:
        """The result type; where none is stated the body is read for it."""
        if callee.returns is None:
            if callee.state == "lowering":
                raise context.mistake(
                    "GM0233",
                    call,
                    f"`{callee.name}` calls itself before the type of its result is known",
                    label="type not known yet",
                    hint=f"state it: `def {callee.name}(...) -> T.float32:`",
                    notes=(Note("the function is here", callee.file.source.name_place(callee.node)),),
                )
            self.lower(callee)
        if callee.returns is None:
            raise Reported
        return callee.returns

    def lower(self, callee: Callee) -> None:
        """Read a function's body, once."""
        if callee.state != "signed":
            return
        callee.state = "lowering"
        context = callee.context
        assert context is not None
        try:
            callee.function = lower_function(context, callee, self.name_of(callee))
            callee.state = "wrong" if context.failed else "done"
        except (Mistake, Reported) as problem:
            callee.state = "wrong"
            self.problems.add(problem)

    # All of it --------------------------------------------------------------------------------------------------------

    def module(self, file: File, functions: Sequence[str] | None) -> Module:
        """The IR module of a file's public functions and all they call. Raises UserError with everything wrong."""
        check_params(self, file)
        roots = self._roots(file)
        chosen = self._chosen(file, roots, functions)
        for callee in chosen:
            # Public names are theirs, whatever is called first.
            self.names.setdefault(callee.name, callee)
        for callee in chosen:
            try:
                self.sign(callee)
            except Reported:
                continue
        position = 0
        while position < len(self.order) and not self.problems.are_many:
            self.lower(self.order[position])
            position += 1
        self.problems.check()
        for callee in self.callees.values():
            if callee.state in ("wrong", "signing", "lowering"):
                raise InternalError(
                    f"the function {callee.name} was given up without a reason",
                    place=callee.file.source.name_place(callee.node),
                )
        made = [callee.function for callee in self._in_source_order() if callee.function is not None]
        chosen_names = {id(callee) for callee in chosen}
        for callee in self.order:
            if id(callee) not in chosen_names and callee.function is not None and callee.function.is_public:
                # A public function of another file, or one that was not asked for, is a helper here.
                index = made.index(callee.function)
                made[index] = callee.function.with_facts(symbol=None, signature="")
        externs = tuple(Extern(symbol, library) for symbol, library in self.used_externs.items())
        return Module(tuple(made), externs)

    def _in_source_order(self) -> list[Callee]:
        files = list(self.files)
        return sorted(self.order, key=lambda one: (files.index(one.file.name), one.node.lineno))

    def _roots(self, file: File) -> list[Callee]:
        """The functions that the file publishes, and those of its ir_module classes."""
        found: list[Callee] = []
        context = Context(self, file, None)
        seen: dict[str, ast.FunctionDef] = {}
        for node in file.tree.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.decorator_list:
                self._root(context, file, node, "", found, seen)
            elif isinstance(node, ast.ClassDef):
                self._class_roots(context, file, node, found, seen)
        return found

    def _class_roots(
        self, context: Context, file: File, node: ast.ClassDef, found: list[Callee], seen: dict[str, ast.FunctionDef]
    ) -> None:
        try:
            role = role_of(context, node)
        except (Mistake, Reported) as problem:
            self.problems.add(problem)
            return
        if role is not Role.MODULE:
            return
        for inner in node.body:
            if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._root(context, file, inner, node.name, found, seen)
            elif not isinstance(inner, (ast.Assign, ast.AnnAssign, ast.Pass)) and not _is_docstring(inner):
                self.problems.add(
                    context.mistake(
                        "GM0222",
                        file.source.head_place(inner),
                        "an ir_module has functions and constants only",
                        label="not a function",
                        hint="move it out of the class",
                    )
                )

    def _root(
        self,
        context: Context,
        file: File,
        node: ast.FunctionDef | ast.AsyncFunctionDef,
        owner: str,
        found: list[Callee],
        seen: dict[str, ast.FunctionDef],
    ) -> None:
        try:
            if node.name in seen:
                raise context.mistake(
                    "GM0208",
                    file.source.name_place(node),
                    f"the function `{node.name}` is defined twice",
                    label="the second time",
                    hint="give one of them another name",
                    notes=(Note("the first is here", file.source.name_place(seen[node.name])),),
                )
            callee = self.callee_of(file, node.name, Definition("function", node), context, owner)
        except (Mistake, Reported) as problem:
            self.problems.add(problem)
            return
        seen[node.name] = callee.node
        if not callee.is_macro and (node.decorator_list or owner):
            found.append(callee)

    def _chosen(self, file: File, roots: list[Callee], functions: Sequence[str] | None) -> list[Callee]:
        public = [callee for callee in roots if callee.is_public]
        if functions is None:
            if not public:
                # Private functions alone make a module too, for those who transform IR; a file without any is a mistake.
                if roots or self.problems.found:
                    return roots
                self.problems.add(
                    mistake(
                        "GM0206",
                        Place(file.name, 1, 1, 1, 1),
                        f"{file.name} has no kernel: no function is marked `@T.prim_func`",
                        label="no kernel",
                        hint="write `from gristmill.script import tir as T`, and `@T.prim_func` above the function",
                    )
                )
            return roots
        by_name = {callee.name: callee for callee in public}
        chosen = []
        for name in functions:
            if name in by_name:
                chosen.append(by_name[name])
                continue
            private = any(callee.name == name for callee in roots)
            self.problems.add(
                mistake(
                    "GM0207",
                    Place(file.name, 1, 1, 1, 1),
                    f"{file.name} has no public function `{name}`" + (": it is private" if private else ""),
                    label="not there",
                    hint=suggestion(name, [*by_name], f"its public functions are {', '.join(by_name) or 'none'}"),
                )
            )
        return chosen


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
