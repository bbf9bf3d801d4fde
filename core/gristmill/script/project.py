"""One reading: the files of a kernel module, their constants and functions, and the IR module they make."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gristmill.errors import Note, Place, close_match
from gristmill.ir.dtype import DType
from gristmill.ir.expr import Expr, FloatImm, IntImm
from gristmill.ir.module import Extern, Function, Module
from gristmill.ir.stmt import LoopHints
from gristmill.script.context import Context
from gristmill.script.decorators import Role, role_of
from gristmill.script.expressions import lower
from gristmill.script.files import Definition, File, gather
from gristmill.script.functions import lower_function, sign
from gristmill.script.lookup import import_value, is_constant
from gristmill.script.problems import Mistake, Problems, Reported, mistake
from gristmill.script.readable import size_text
from gristmill.script.reader import read_tree
from gristmill.script.source import Positioned, Source
from gristmill.script.values import Callee, ClassNamespace, FileNamespace, Symbolic, Value, describe

ParamValue = int | float | bool | tuple["ParamValue", ...]
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
            self.check_imports(found)
        return found

    def check_imports(self, file: File) -> None:
        """Refuse imports that no dialect or no kernel can have, also where nothing uses them."""
        ctx = Context(self, file, None)
        for node in file.tree.body:
            if not isinstance(node, (ast.Import, ast.ImportFrom)):
                continue
            try:
                self._check_import(ctx, node)
            except Mistake as problem:
                self.problems.add(problem)

    def _check_import(self, ctx: Context, node: ast.Import | ast.ImportFrom) -> None:
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        level = 0 if isinstance(node, ast.Import) else node.level
        is_tvm = level == 0 and any(module.split(".")[0] == "tvm" for module in modules)
        if is_tvm and self.dialect != "tvmscript":
            raise ctx.mistake(
                "GM0209",
                node,
                "the file is written in TVM's dialect, and is read as Gristmill's",
                label="imports tvm",
                hint='write `from gristmill.script import tir as T, ir as I`, or set `dialect = "tvmscript"` '
                "in the [[module]] of kernels.toml",
            )
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            ctx.file.imports_everything = True
            raise ctx.mistake(
                "GM0213",
                node,
                "an import of everything (`*`) hides where names come from",
                label="imports everything",
                hint="import what is used by name, as in `from gristmill.script import tir as T`",
            )
        if isinstance(node, ast.ImportFrom) and (level or (node.module or "").startswith("gristmill.script")):
            for alias in node.names:
                definition = ctx.file.definitions.get(alias.asname or alias.name)
                if definition is not None and definition.node is alias:
                    import_value(ctx, definition, alias.asname or alias.name)

    def imported_file(
        self, ctx: Context, node: ast.alias, module: str, level: int, inner: str
    ) -> tuple[File, str] | None:
        """The file that an import means and the name wanted from it ("" for the file itself); None if it is foreign."""
        if self.resolve_import is None and level == 0:
            return None
        importing = ctx.file.name
        found = self._resolve(ctx, node, module, level, importing) if module else None
        if found is not None:
            return self._imported(*found), inner
        if inner:
            # `from . import constants`, `from .package import constants`.
            dotted = f"{module}.{inner}" if module else inner
            found = self._resolve(ctx, node, dotted, level, importing)
            if found is not None:
                return self._imported(*found), ""
        if level == 0:
            return None
        dots = "." * level
        raise ctx.mistake(
            "GM0210",
            node,
            f"there is no file for `{dots}{module or inner}` beside {importing}",
            label="not found",
            hint=f"make the file {(module or inner).replace('.', '/')}.py, or mend the import",
        )

    def _resolve(
        self, ctx: Context, node: ast.alias, module: str, level: int, importing: str
    ) -> tuple[str, str] | None:
        if self.resolve_import is None:
            return None
        try:
            return self.resolve_import(module, level, importing)
        except OutsideProject as error:
            raise ctx.mistake(
                "GM0212",
                node,
                f"the import leads out of the project: {error}",
                label="outside of the project",
                hint="move the file into the project",
            ) from None

    def _imported(self, name: str, text: str) -> File:
        try:
            return self.read(name, text)
        except Mistake as problem:
            self.problems.add(problem)
            raise Reported from None

    # Constants --------------------------------------------------------------------------------------------------------

    def constant_of(self, file: File, name: str, definition: Definition, ctx: Context, at: Positioned) -> Value:
        """The value of a constant, folded when it is first used."""
        if definition.state == "done":
            return definition.value
        if definition.state == "wrong":
            raise Reported
        if definition.state == "folding":
            raise ctx.mistake(
                "GM0218",
                at,
                f"the constant `{name}` depends on itself",
                label="a circle",
                hint="give one of the constants a value that does not use the other",
            )
        override = self.params.get(name) if file.name == self.main else None
        if name in self.params and file.name == self.main:
            assert override is not None
            definition.state = "folding"
            try:
                definition.value = self._overridden(file, name, definition, override)
            except Mistake:
                definition.state = "wrong"
                raise
            definition.state = "done"
            return definition.value
        definition.state = "folding"
        inner = Context(self, file, None)
        try:
            definition.value = self._folded(inner, name, definition)
            definition.state = "done"
        except Mistake as problem:
            if definition.state == "folding":
                definition.state = "wrong"
            place = problem.diagnostic.place
            if ctx.callee is not None and problem.diagnostic.code == "GM0217" and place is not None:
                raise ctx.mistake(
                    "GM0217", at, f"`{name}` is not a constant that can be read without executing anything",
                    label="no constant", hint=problem.diagnostic.hint,
                    notes=(Note("it is defined here", place),),
                ) from None  # fmt: skip
            raise
        return definition.value

    def _folded(self, ctx: Context, name: str, definition: Definition) -> Value:
        node = definition.node
        hint = f"make `{name}` a number, a text, a tuple or arithmetic of those, or a parameter of the kernel"
        if definition.times > 1:
            raise ctx.mistake(
                "GM0220",
                node,
                f"`{name}` is assigned {definition.times} times at the top level of the file",
                label="the last one",
                hint="give each constant a name of its own; `params` in kernels.toml make variants",
            )
        if definition.kind == "unknown" or not isinstance(node, ast.expr):
            raise ctx.mistake(
                "GM0217",
                node,
                f"`{name}` would have to be executed",
                label="not a plain assignment",
                hint=hint,
            )
        try:
            value = lower(ctx, node)
        except Mistake as problem:
            if problem.diagnostic.code in ("GM0251", "GM0253", "GM0255", "GM0297"):
                raise ctx.mistake(
                    "GM0217", node, f"`{name}` would have to be executed", label="not a constant", hint=hint
                ) from None
            raise
        if not is_constant(value) and not isinstance(value, (Symbolic, ClassNamespace, FileNamespace, Callee)):
            from gristmill.script.values import Namespace

            if isinstance(value, Namespace):
                return value
            raise ctx.mistake("GM0217", node, f"`{name}` is not a constant", label=describe(value), hint=hint)
        return value

    def _overridden(self, file: File, name: str, definition: Definition, override: ParamValue) -> Value:
        """The value that ``params`` give; it must be of the kind of the constant in the file."""
        node = definition.node
        ctx = Context(self, file, None)
        try:
            default = lower(ctx, node) if isinstance(node, ast.expr) and definition.kind == "constant" else None
        except (Mistake, Reported):
            default = None
        found = _of_kind(default, override)
        if found is None:
            raise ctx.mistake(
                "GM0216",
                node if isinstance(node, (ast.expr, ast.stmt)) else None,
                f"the param `{name}` is {describe(override)}, and the constant is {describe(default)}",
                label="the constant in the file",
                hint=f"give `{name}` a value of the same kind in kernels.toml",
            )
        return found

    def check_params(self, file: File) -> None:
        """Every param must name a constant of the file, and be of its kind."""
        known = [name for name, one in file.definitions.items() if one.kind == "constant"]
        for name in self.params:
            definition = file.definitions.get(name)
            if definition is None or definition.kind != "constant":
                meant = close_match(name, known)
                self.problems.add(
                    mistake(
                        "GM0215",
                        Place(file.name, 1, 1, 1, 1),
                        f"the param `{name}` is no constant of {file.name}",
                        label="no such constant",
                        hint=f"did you mean `{meant}`?"
                        if meant
                        else f"its constants are {', '.join(known)}"
                        if known
                        else f"write `{name} = ...` at its top level",
                    )
                )
                continue
            try:
                at = definition.node
                assert isinstance(at, ast.expr)
                self.constant_of(file, name, definition, Context(self, file, None), at)
            except (Mistake, Reported) as problem:
                self.problems.add(problem)

    # Functions --------------------------------------------------------------------------------------------------------

    def callee_of(self, file: File, name: str, definition: Definition, ctx: Context, owner: str = "") -> Callee:
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
        role = role_of(inner, node)
        found = Callee(name, file, node, role is Role.PUBLIC, role is Role.MACRO, owner)
        self.callees[key] = found
        return found

    def method_of(self, ctx: Context, owner: ClassNamespace, node: ast.Attribute) -> Value:
        """``Module.function``."""
        definitions = owner.file.classes.get(owner.name, {})
        definition = definitions.get(node.attr)
        if definition is None:
            meant = close_match(node.attr, [*definitions])
            raise ctx.mistake(
                "GM0284",
                node,
                f"the module `{owner.name}` has no `{node.attr}`",
                label="not known",
                hint=f"did you mean `{meant}`?" if meant else f"it has {', '.join(definitions) or 'no functions'}",
            )
        if definition.kind == "function":
            return self.callee_of(owner.file, node.attr, definition, ctx, owner.name)
        return self.constant_of(owner.file, node.attr, definition, ctx, node)

    def sign(self, callee: Callee) -> None:
        """Read a function's signature, and put it in line to be read. Raises Reported if the signature is wrong."""
        if callee.state == "wrong":
            raise Reported
        if callee.state != "new":
            return
        callee.state = "signing"
        ctx = Context(self, callee.file, callee)
        try:
            sign(ctx, callee)
        except (Mistake, Reported) as problem:
            callee.state = "wrong"
            self.problems.add(problem)
            raise Reported from None
        callee.context = ctx
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

    def result_of(self, ctx: Context, call: ast.Call, callee: Callee) -> DType:
        """The result type; where none is stated the body is read for it."""
        if callee.returns is None:
            if callee.state == "lowering":
                raise ctx.mistake(
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
        ctx = callee.context
        assert ctx is not None
        try:
            callee.function = lower_function(ctx, callee, self.name_of(callee))
            callee.state = "wrong" if ctx.failed else "done"
        except (Mistake, Reported) as problem:
            callee.state = "wrong"
            self.problems.add(problem)

    # All of it --------------------------------------------------------------------------------------------------------

    def shape_text(self, expr: Expr) -> str:
        return size_text(expr)

    def module(self, file: File, functions: Sequence[str] | None) -> Module:
        """The IR module of a file's public functions and all they call. Raises UserError with everything wrong."""
        self.check_params(file)
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
        ctx = Context(self, file, None)
        seen: dict[str, ast.FunctionDef] = {}
        for node in file.tree.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.decorator_list:
                self._root(ctx, file, node, "", found, seen)
            elif isinstance(node, ast.ClassDef):
                self._class_roots(ctx, file, node, found, seen)
        return found

    def _class_roots(
        self, ctx: Context, file: File, node: ast.ClassDef, found: list[Callee], seen: dict[str, ast.FunctionDef]
    ) -> None:
        try:
            role = role_of(ctx, node)
        except (Mistake, Reported) as problem:
            self.problems.add(problem)
            return
        if role is not Role.MODULE:
            return
        for inner in node.body:
            if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._root(ctx, file, inner, node.name, found, seen)
            elif not isinstance(inner, (ast.Assign, ast.AnnAssign, ast.Pass)) and not _is_docstring(inner):
                self.problems.add(
                    ctx.mistake(
                        "GM0222",
                        file.source.head_place(inner),
                        "an ir_module has functions and constants only",
                        label="not a function",
                        hint="move it out of the class",
                    )
                )

    def _root(
        self,
        ctx: Context,
        file: File,
        node: ast.FunctionDef | ast.AsyncFunctionDef,
        owner: str,
        found: list[Callee],
        seen: dict[str, ast.FunctionDef],
    ) -> None:
        try:
            if node.name in seen:
                raise ctx.mistake(
                    "GM0208",
                    file.source.name_place(node),
                    f"the function `{node.name}` is defined twice",
                    label="the second time",
                    hint="give one of them another name",
                    notes=(Note("the first is here", file.source.name_place(seen[node.name])),),
                )
            callee = self.callee_of(file, node.name, Definition("function", node), ctx, owner)
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
            meant = close_match(name, [*by_name])
            self.problems.add(
                mistake(
                    "GM0207",
                    Place(file.name, 1, 1, 1, 1),
                    f"{file.name} has no public function `{name}`" + (": it is private" if private else ""),
                    label="not there",
                    hint=f"did you mean `{meant}`?"
                    if meant
                    else f"its public functions are {', '.join(by_name) or 'none'}",
                )
            )
        return chosen


class OutsideProject(Exception):
    """Raised by a ``resolve_import`` for a file outside of the project; the text is its path."""


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _of_kind(default: Value, override: ParamValue) -> Value:
    """The param as a value of the kind of the constant; None if it is of another kind."""
    if isinstance(default, (IntImm, FloatImm)):
        plain = _of_kind(bool(default.value) if default.type.is_bool else default.value, override)
        if plain is None:
            return None
        from gristmill.script.types import literal, misfit

        return None if misfit(plain, default.type) else literal(plain, default.type, default.span)
    if isinstance(default, bool) or isinstance(override, bool):
        return override if isinstance(default, bool) and isinstance(override, bool) else None
    if isinstance(default, float) and isinstance(override, (int, float)):
        return float(override)
    if isinstance(default, int) and isinstance(override, int):
        return override
    if isinstance(default, str) and isinstance(override, str):
        return override
    if isinstance(default, tuple) and isinstance(override, (tuple, list)):
        items = [
            _of_kind(default[index] if index < len(default) else (default[-1] if default else item), item)
            for index, item in enumerate(override)
        ]
        return None if any(item is None for item in items) else tuple(items)
    return None


__all__ = ["Function", "LoopHints", "OutsideProject", "ParamValue", "Project", "ResolveImport"]
