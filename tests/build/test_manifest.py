"""kernels.toml: what a good one gives, and what each wrong one is told.

In the wrong manifests the character ``^`` stands directly before the first character of the place that must be named;
it is taken out before the text is read.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import jsonschema
import pytest
import toml
import tomli

from gristmill.build.manifest import BuildOptions, load_manifest, missing_sources, parse_manifest
from gristmill.build.manifest_kinds import resolve_targets
from gristmill.build.manifest_tables import manifest_schema
from gristmill.errors import InternalError, PluginError, UserError
from gristmill.ir.target import Target
from gristmill.plugin.artifacts import Capabilities
from gristmill.plugin.protocols import KeyDescription, TargetKind


def resolve(target: Target) -> Target:
    """Knows x86-64-v3 and nothing else."""
    if target.arch == "native":
        return Target(target.kind, "x86-64-v3", target.features, target.options)
    if target.kind == "cpu" and target.arch not in {"", "x86-64-v3"}:
        raise ValueError(f"there is no processor `{target.arch}`")
    if target.arch == "broken":
        raise RuntimeError("lost")
    return target


def kind(name: str, *keys: KeyDescription) -> TargetKind:
    return TargetKind(
        name,
        summary=f"What {name} is.",
        generator="none",
        blob_kinds=("none",),
        resolve=resolve,
        capabilities=lambda target: Capabilities(),
        keys=keys,
        architectures=("x86-64-v3",),
    )


KINDS = {
    "cpu": kind("cpu"),
    "amdgpu": kind("amdgpu"),
    "vulkan": kind(
        "vulkan",
        KeyDescription("version", "string", "Vulkan version.", "1.1", ("1.0", "1.1", "1.2", "1.3")),
        KeyDescription("float16", "boolean", "Whether the device computes in half precision.", False),
        KeyDescription("registers", "integer", "How many registers there are."),
        KeyDescription("clock", "number", "Its clock, in MHz."),
        KeyDescription("extensions", "strings", "Vulkan extensions that the device has."),
    ),
}

WHOLE = """\
schema = 1
[project]
name = "imagekit"
host = ["x86-64-v2", "aarch64"]            # compiled host parts; the default
[targets]                                  # name = target string, or a table
cpu = "cpu:x86-64-v3"
mi300 = "amdgpu:gfx942"
gpu = { kind = "vulkan", version = "1.2", float16 = true }
[[module]]
name = "blur"                              # -> build/kernels/blur.kpack
source = "kernels/blur.py"
functions = ["blur_rows", "blur_columns"]  # default: every public one
targets = ["cpu", "gpu"]                   # default: all
params = { RADIUS = 3, WEIGHTS = [1, 2.5], EXACT = true, MODE = "wrap", SCALE = 0.5 }
options = { opt_level = 2 }
extern = { cblas_sdot = "libopenblas.so.0" }
[module.target.gpu]
params = { RADIUS = 4 }
passes = ["acme.prefetch"]
options = { fast_math = true }
[[module]]
name = "other"
source = "./kernels/other.py"
dialect = "tvmscript"
"""

MINIMAL = """\
schema = 1
[project]
name = "p"
[targets]
cpu = "cpu"
[[module]]
name = "m"
source = "m.py"
"""


def refused(text: str, file: str = "kernels.toml") -> UserError:
    with pytest.raises(UserError) as caught:
        parse_manifest(text, file, KINDS)
    return caught.value


def test_whole_manifest() -> None:
    manifest = parse_manifest(WHOLE, "some/kernels.toml", KINDS)
    assert manifest.schema == 1
    assert (manifest.project.name, manifest.project.host) == ("imagekit", ("x86-64-v2", "aarch64"))
    cpu, mi300, gpu = manifest.targets
    assert (cpu.name, cpu.target) == ("cpu", Target("cpu", "x86-64-v3"))
    assert (mi300.name, mi300.target) == ("mi300", Target("amdgpu", "gfx942"))
    assert (gpu.name, gpu.target) == ("gpu", Target("vulkan", options=(("float16", True), ("version", "1.2"))))
    blur, other = manifest.modules
    assert blur.functions == ("blur_rows", "blur_columns")
    assert blur.targets == ("cpu", "gpu")
    assert blur.params == {"RADIUS": 3, "WEIGHTS": (1, 2.5), "EXACT": True, "MODE": "wrap", "SCALE": 0.5}
    assert blur.extern == {"cblas_sdot": "libopenblas.so.0"}
    assert blur.options == BuildOptions(opt_level=2, fast_math=False)
    assert (other.source, other.targets, other.functions, other.dialect) == (
        "kernels/other.py",
        ("cpu", "mi300", "gpu"),
        None,
        "tvmscript",
    )
    assert other.options == BuildOptions()
    assert manifest.source_path(other).endswith("/some/kernels/other.py")


def test_settings_of_a_target_merge_params_and_options_and_replace_lists() -> None:
    blur = parse_manifest(WHOLE, "kernels.toml", KINDS).modules[0]
    assert blur.settings("cpu").params["RADIUS"] == 3
    gpu = blur.settings("gpu")
    assert (gpu.params["RADIUS"], gpu.params["MODE"]) == (4, "wrap")
    assert gpu.passes == ("acme.prefetch",)
    assert gpu.options == BuildOptions(opt_level=2, fast_math=True)
    assert gpu.functions == blur.functions


def test_defaults() -> None:
    manifest = parse_manifest(MINIMAL, "kernels.toml", KINDS)
    assert manifest.project.host == ("x86-64-v2",)
    assert manifest.targets[0].target == Target("cpu")
    module = manifest.modules[0]
    assert (module.dialect, module.passes, dict(module.params), dict(module.extern)) == ("gristmill", (), {}, {})


def test_features_of_a_target_string() -> None:
    text = MINIMAL.replace('"cpu"', '"cpu:x86-64-v3+avx512vnni+f16c"')
    (entry,) = parse_manifest(text, "kernels.toml", KINDS).targets
    assert entry.target == Target("cpu", "x86-64-v3", ("avx512vnni", "f16c"))


def test_target_table_has_all_that_a_string_has() -> None:
    table = (
        '{ kind = "vulkan", arch = "rdna3", features = ["a", "b"], extensions = ["x", "y"], clock = 3, registers = 8 }'
    )
    (entry,) = parse_manifest(MINIMAL.replace('"cpu"', table), "kernels.toml", KINDS).targets
    options = (("clock", 3.0), ("extensions", "x,y"), ("registers", 8))
    assert entry.target == Target("vulkan", "rdna3", ("a", "b"), options)


def test_kinds_resolve_their_targets() -> None:
    manifest = parse_manifest(WHOLE.replace("cpu:x86-64-v3", "cpu:native"), "kernels.toml", KINDS)
    assert resolve_targets(manifest, KINDS)["cpu"] == Target("cpu", "x86-64-v3")
    manifest = parse_manifest(WHOLE.replace("cpu:x86-64-v3", "cpu:x86-64-v33"), "kernels.toml", KINDS)
    with pytest.raises(UserError) as caught:
        resolve_targets(manifest, KINDS)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "GM0119"
    assert str(diagnostic.place) == "kernels.toml:6:7"
    assert diagnostic.hint == "did you mean `cpu:x86-64-v3`?"
    assert "no processor `x86-64-v33`" in diagnostic.message


def test_faults_of_plugins_are_named() -> None:
    manifest = parse_manifest(WHOLE.replace("gfx942", "broken"), "kernels.toml", KINDS)
    with pytest.raises(InternalError, match="target kind `amdgpu` failed on `amdgpu:broken`: RuntimeError: lost"):
        resolve_targets(manifest, KINDS)
    strange = {"cpu": kind("cpu", KeyDescription("x", "complex", "?"))}
    with pytest.raises(PluginError, match="unknown type `complex`"):
        parse_manifest(MINIMAL.replace('"cpu"', '{ kind = "cpu", x = 1 }'), "kernels.toml", strange)


def test_places_of_values_and_keys() -> None:
    manifest = parse_manifest(WHOLE, "kernels.toml", KINDS)
    blur = manifest.modules[0]
    assert str(blur.place) == "kernels.toml:9:1"
    assert str(blur.place_of("functions", 1)) == "kernels.toml:12:27"
    assert str(blur.key_place_of("params", "RADIUS")) == "kernels.toml:14:12"
    assert str(blur.overrides["gpu"].place_of("passes", 0)) == "kernels.toml:19:11"
    assert str(manifest.targets[1].place) == "kernels.toml:7:9"
    assert str(manifest.project.place_of("host", 0)) == "kernels.toml:4:9"


def test_manifest_survives_pickling() -> None:
    manifest = parse_manifest(WHOLE, "kernels.toml", KINDS)
    again = pickle.loads(pickle.dumps(manifest))
    assert again == manifest
    assert again.modules[0].place == manifest.modules[0].place


def at(code: str, text: str, hint: str, message: str = "") -> tuple[str, str, str, str]:
    return code, text, hint, message


HEAD = 'schema = 1\n[project]\nname = "p"\n[targets]\ncpu = "cpu"\ngpu = { kind = "vulkan" }\n'
MODULE = '[[module]]\nname = "m"\nsource = "m.py"\n'

WRONG = {
    # Not TOML
    "unquoted": at("GM0101", HEAD + "[[module]]\nname = ^blur\n", "put strings in quotes"),
    "colon": at("GM0101", "schema^: 1\n", "TOML writes `key = value`"),
    "capital": at("GM0101", HEAD + MODULE + "options = { fast_math = ^True }", "toml.io"),
    "capital value": at("GM0101", "a = ^True\n", "write true, in small letters"),
    "unclosed list": at("GM0101", HEAD + '[[module]]\ntargets = ["cpu"\n^', "toml.io"),
    "unclosed string": at("GM0101", 'schema = 1\n[project]\nname = "p^\n', "close the string"),
    "key twice": at("GM0101", "schema = 1\nschema = 1^\n", "toml.io", "cannot overwrite a value"),
    "huge number": at("GM0101", "schema = ^" + "1" * 5000, "64 bits"),
    # Unknown keys
    "misspelt key": at("GM0102", HEAD + MODULE + '^tragets = ["cpu"]\n', "did you mean `targets`?", "[[module]] `m`"),
    "unknown key": at("GM0102", HEAD + MODULE + "^zzz = 1\n", "its keys are `name`, `source`"),
    "unknown top key": at("GM0102", "^modules = 1\n" + HEAD + MODULE, "did you mean `module`?"),
    "misspelt project key": at(
        "GM0102", HEAD.replace("[targets]", "^hosts = []\n[targets]") + MODULE, "did you mean `host`?"
    ),
    "unknown kind key": at(
        "GM0102",
        HEAD.replace('"vulkan"', '"vulkan", ^verison = "1.1"') + MODULE,
        "did you mean `version`?",
        "target kind `vulkan`",
    ),
    "unknown option": at("GM0102", HEAD + MODULE + "options = { ^fastmath = true }\n", "did you mean `fast_math`?"),
    "unknown override": at("GM0102", HEAD + MODULE + "[module.target.cpu]\n^param = {}\n", "did you mean `params`?"),
    "unknown override option": at(
        "GM0102", HEAD + MODULE + "[module.target.cpu.options]\n^optlevel = 1\n", "did you mean `opt_level`?"
    ),
    # Missing keys
    "no schema": at("GM0103", "^" + HEAD.replace("schema = 1\n", "") + MODULE, "add schema = 1 as the first line"),
    "no project": at("GM0103", '^schema = 1\n[targets]\ncpu = "cpu"\n' + MODULE, "[project] with name"),
    "no project name": at("GM0103", HEAD.replace('[project]\nname = "p"', "^[project]") + MODULE, 'add name = "..."'),
    "no targets": at(
        "GM0103", '^schema = 1\n[project]\nname = "p"\n[[module]]\nname="m"\nsource="m.py"\n', "[targets]"
    ),
    "no module": at("GM0103", "^" + HEAD, "[[module]] with name and source"),
    "no module name": at("GM0103", HEAD + '^[[module]]\nsource = "m.py"\n', 'add name = "..."'),
    "no source": at("GM0103", HEAD + '^[[module]]\nname = "m"\n', 'add source = "kernels/....py"'),
    "no kind": at("GM0103", HEAD.replace('{ kind = "vulkan" }', '^{ version = "1.1" }') + MODULE, 'add kind = "..."'),
    # Wrong types
    "schema is text": at("GM0104", HEAD.replace("schema = 1", 'schema = ^"1"') + MODULE, "write it without quotes: 1"),
    "schema is a float": at("GM0104", HEAD.replace("schema = 1", "schema = ^1.0") + MODULE, "without the point: 1"),
    "name is a number": at("GM0104", HEAD.replace('name = "p"', "name = ^3") + MODULE, 'write it in quotes: "3"'),
    "targets is text": at("GM0104", HEAD + MODULE + 'targets = ^"cpu"\n', 'write a list: ["cpu"]'),
    "element is a number": at("GM0104", HEAD + MODULE + 'functions = ["f", ^1]\n', 'write it in quotes: "1"'),
    "module is a table": at(
        "GM0104", HEAD + '^[module]\nname = "m"\nsource = "m.py"\n', "write [[module]], with double brackets"
    ),
    "project is a list": at("GM0104", HEAD.replace("[project]", "^[[project]]") + MODULE, ""),
    "boolean is text": at("GM0104", HEAD + MODULE + 'options.fast_math = ^"yes"\n', "write true without quotes"),
    "boolean is a number": at("GM0104", HEAD + MODULE + "options.fast_math = ^0\n", "write false"),
    "parameter is a date": at("GM0104", HEAD + MODULE + "params = { N = ^1979-05-27 }\n", "", "a date or time"),
    "parameter is a table": at("GM0104", HEAD + MODULE + "params = { N = ^{ a = 1 } }\n", ""),
    "list of texts": at("GM0104", HEAD + MODULE + 'params = { N = [1, ^"2"] }\n', "", "a number"),
    "kind is a number": at("GM0104", HEAD.replace('"vulkan"', "^7") + MODULE, 'write it in quotes: "7"'),
    "target is a list": at("GM0104", HEAD.replace('"cpu"', '^["cpu"]') + MODULE, 'write "kind", "kind:arch"'),
    "extern is a list": at("GM0104", HEAD + MODULE + 'extern = ^["f"]\n', ""),
    # Values
    "dialect": at("GM0105", HEAD + MODULE + 'dialect = ^"tvm-script"\n', "did you mean `tvmscript`?"),
    "dialect, far off": at("GM0105", HEAD + MODULE + 'dialect = ^"x"\n', "choose one of `gristmill` and `tvmscript`"),
    "opt level": at("GM0105", HEAD + MODULE + "options.opt_level = ^4\n", "the least is 0, the most is 3"),
    "kind's choice": at("GM0105", HEAD.replace('"vulkan"', '"vulkan", version = ^"1.9"') + MODULE, "did you mean `1."),
    "wide parameter": at("GM0105", HEAD + MODULE + "params = { N = ^18446744073709551616 }\n", "the most is"),
    # Names
    "project name": at("GM0106", HEAD.replace('"p"', '^"a/b"') + MODULE, "use letters, digits"),
    "module name": at("GM0106", HEAD + '[[module]]\nname = ^"../m"\nsource = "m.py"\n', "use letters, digits"),
    "module name, empty": at("GM0106", HEAD + '[[module]]\nname = ^""\nsource = "m.py"\n', "use letters"),
    "target name": at("GM0106", HEAD + '^"a b" = "cpu"\n' + MODULE, "begin with a letter"),
    "function name": at("GM0106", HEAD + MODULE + 'functions = [^"a-b"]\n', "use letters, digits and `_`"),
    "parameter name": at("GM0106", HEAD + MODULE + 'params = { ^"A-B" = 1 }\n', "use letters, digits and `_`"),
    "pass name": at("GM0106", HEAD + MODULE + 'passes = [^"a/b"]\n', "acme.prefetch"),
    "symbol name": at("GM0106", HEAD + MODULE + 'extern = { ^"a.b" = "libm.so.6" }\n', "begin with a letter"),
    "host name": at("GM0106", HEAD.replace("[targets]", 'host = [^"x86 64"]\n[targets]') + MODULE, "x86-64-v2"),
    # Twice
    "module twice": at("GM0107", HEAD + MODULE + MODULE.replace('name = "m"', 'name = ^"m"'), "rename one", "already"),
    "module in two cases": at(
        "GM0107", HEAD + MODULE + MODULE.replace('name = "m"', 'name = ^"M"'), "rename one", "differ only in case"
    ),
    "target in two cases": at("GM0107", HEAD + '^CPU = "cpu"\n' + MODULE, "rename one"),
    "function twice": at("GM0107", HEAD + MODULE + 'functions = ["f", ^"f"]\n', "remove one"),
    # References
    "no such target": at("GM0108", HEAD + MODULE + 'targets = ["cpu", ^"gup"]\n', "did you mean `gpu`?"),
    "no such target, far off": at("GM0108", HEAD + MODULE + 'targets = [^"zz"]\n', "the targets are `cpu` and `gpu`"),
    "no such target after a refused one": at(
        "GM0108", HEAD + MODULE + 'targets = ["cpu", ^"gup"]\nfunctions = ["f"]\n', "did you mean `gpu`?"
    ),
    "override of no target": at("GM0108", HEAD + MODULE + "[module.target.^cpus]\n", "did you mean `cpu`?"),
    "override of a target not built": at(
        "GM0108", HEAD + MODULE + 'targets = ["cpu"]\n[module.target.^gpu]\n', "add `gpu` to its `targets`"
    ),
    "no such kind": at("GM0109", HEAD.replace('"cpu"', '^"cup:x"') + MODULE, "did you mean `cpu`?"),
    "no such kind, far off": at("GM0109", HEAD.replace('"cpu"', '^"wasm"') + MODULE, "`gristmill targets` shows them"),
    "no such kind in a table": at("GM0109", HEAD.replace('"vulkan"', '^"vulcan"') + MODULE, "did you mean `vulkan`?"),
    "target string": at("GM0110", HEAD.replace('"cpu"', '^"cpu x86"') + MODULE, "kind:arch+feature"),
    "target string, empty": at("GM0110", HEAD.replace('"cpu"', '^""') + MODULE, "kind:arch+feature"),
    "target string, no arch": at("GM0110", HEAD.replace('"cpu"', '^"cpu:"') + MODULE, "kind:arch+feature"),
    # Paths
    "absolute path": at("GM0111", HEAD + MODULE.replace('"m.py"', '^"/etc/passwd"'), "relative to the folder"),
    "path of a drive": at("GM0111", HEAD + MODULE.replace('"m.py"', '^"C:/m.py"'), "relative to the folder"),
    "feature of a table": at(
        "GM0106", HEAD.replace('"vulkan"', '"vulkan", features = [^"a b"]') + MODULE, "use letters"
    ),
    "kind's list": at("GM0104", HEAD.replace('"vulkan"', '"vulkan", extensions = ^"x"') + MODULE, 'a list: ["x"]'),
    "kind's number": at("GM0104", HEAD.replace('"vulkan"', '"vulkan", clock = ^"x"') + MODULE, ""),
    "path that leaves": at("GM0111", HEAD + MODULE.replace('"m.py"', '^"a/../../m.py"'), "move the file into"),
    "path with backslash": at("GM0111", HEAD + MODULE.replace('"m.py"', "^'a\\m.py'"), '"a/m.py"'),
    "empty path": at("GM0111", HEAD + MODULE.replace('"m.py"', '^""'), "write a path such as"),
    "path with a control character": at("GM0111", HEAD + MODULE.replace('"m.py"', '^"a\\u0000.py"'), "write a path"),
    # Numbers of the format, sizes, encodings
    "schema of the future": at("GM0113", HEAD.replace("1", "^2", 1) + MODULE, "install a newer gristmill"),
    "schema zero": at("GM0113", HEAD.replace("1", "^0", 1) + MODULE, "write schema = 1"),
    "deep list": at("GM0114", HEAD + MODULE + "params.^N = " + "[" * 40 + "]" * 40, "flatten it"),
    "byte order mark": at("GM0115", "^\ufeff" + HEAD + MODULE, "without a byte order mark"),
    "empty targets": at("GM0117", HEAD + MODULE + "targets = ^[]\n", "leave the key out for the default"),
    "no target": at("GM0117", 'schema = 1\n[project]\nname = "p"\n^[targets]\n' + MODULE, "add one"),
    "empty module list": at("GM0117", "module = ^[]\n" + HEAD, "add a [[module]]"),
    "library with a path": at("GM0118", HEAD + MODULE + 'extern = { f = ^"/tmp/x.so" }\n', "plain file name"),
    "library, empty": at("GM0118", HEAD + MODULE + 'extern = { f = ^"" }\n', "libm.so.6"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_wrong_manifest(case: tuple[str, str, str, str]) -> None:
    code, marked, hint, message = case
    before, mark, after = marked.partition("^")
    assert mark
    error = refused(before + after)
    (diagnostic,) = error.diagnostics
    assert diagnostic.code == code, error
    assert diagnostic.place is not None
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    assert (diagnostic.place.line, diagnostic.place.column) == (line, column), error
    assert hint in diagnostic.hint, error
    assert message in diagnostic.message, error
    assert "Traceback" not in str(error)


def test_there_are_enough_wrong_manifests() -> None:
    assert len(WRONG) >= 40


def test_all_mistakes_come_in_one_run_in_the_order_of_the_text() -> None:
    text = (
        'schema = 1\n[project]\nname = 3\n[targets]\ncpu = "cup"\n[[module]]\nname = "m"\nsource = "../m.py"\n'
        'tragets = ["cpu"]\n[[module]]\nname = "m"\noptions = { opt_level = 9 }\ntargets = ["gpu"]\n'
    )
    error = refused(text)
    assert [(found.code, found.place.line) for found in error.diagnostics if found.place] == [
        ("GM0104", 3),
        ("GM0109", 5),
        ("GM0111", 8),
        ("GM0102", 9),
        ("GM0103", 10),
        ("GM0107", 11),
        ("GM0105", 12),
        ("GM0108", 13),
    ]
    assert error.exit_status == 1


def test_positions_hold_when_earlier_elements_were_refused() -> None:
    error = refused(HEAD + MODULE + 'targets = [1, "cpu", "gup"]\n')
    assert [(found.code, found.place.column) for found in error.diagnostics if found.place] == [
        ("GM0104", 12),
        ("GM0108", 22),
    ]


def test_second_name_points_to_the_first() -> None:
    error = refused(HEAD + MODULE + MODULE)
    (note,) = error.diagnostics[0].notes
    assert note.place is not None
    assert note.place.line == 8


def test_rendering_shows_the_line_and_the_caret() -> None:
    error = refused(HEAD + MODULE + 'tragets = ["cpu"]\n')
    assert str(error) == (
        "error[GM0102]: unknown key `tragets` in [[module]] `m`\n"
        "  --> kernels.toml:10:1\n"
        "   |\n"
        '10 | tragets = ["cpu"]\n'
        "   | ^^^^^^^ not a key here\n"
        "  = hint: did you mean `targets`?"
    )


def test_many_mistakes_are_cut() -> None:
    error = refused(HEAD + MODULE + "".join(f"zz{number} = 1\n" for number in range(500)))
    assert len(error.diagnostics) == 100
    assert error.diagnostics[-1].notes[-1].message == "there are 400 more mistakes like these"


def test_too_many_modules() -> None:
    error = refused("module = [" + "{}," * 10_001 + "]\n" + HEAD)
    assert [found.code for found in error.diagnostics] == ["GM0114"]


def test_unreadable_manifests(tmp_path: Path) -> None:
    def failing(path: Path) -> UserError:
        with pytest.raises(UserError) as caught:
            load_manifest(path, KINDS)
        return caught.value

    absent = failing(tmp_path / "absent.toml")
    assert absent.code == "GM0112"
    assert "gristmill init" in absent.diagnostics[0].hint
    assert failing(tmp_path).code == "GM0112"
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * (1 << 20) + b"\n")
    assert failing(large).code == "GM0114"
    latin = tmp_path / "latin.toml"
    latin.write_bytes("schema = 1\n# é caf".encode() + b"\xe9\n")
    error = failing(latin)
    assert error.code == "GM0115"
    place = error.diagnostics[0].place
    assert place is not None
    assert (place.line, place.column) == (2, 8)


def test_deep_nesting_does_not_crash() -> None:
    for opening, closing in (("[", "]"), ("{a=", "}")):
        depth = 100_000
        error = refused("schema = 1\nx = " + opening * depth + "1" + closing * depth)
        assert error.code in {"GM0114", "GM0101"}
    assert refused(".".join(["a"] * 50_000) + " = 1").code == "GM0114"


def test_sources_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "blur.py").write_text("")
    (tmp_path / "kernels.toml").write_text(
        MINIMAL.replace('"m.py"', '"kernels/blurr.py"')
        + '[[module]]\nname = "folder"\nsource = "kernels"\n[[module]]\nname = "good"\nsource = "kernels/blur.py"\n'
    )
    manifest = load_manifest(tmp_path, KINDS)
    first, second = missing_sources(manifest)
    assert (first.code, first.hint) == ("GM0116", 'did you mean "kernels/blur.py"?')
    assert first.place is not None
    assert (first.place.line, first.place.column) == (8, 10)
    assert "is a folder" in second.message


@pytest.mark.parametrize("text", [WHOLE, MINIMAL])
def test_samples_read_the_same_with_another_reader(text: str) -> None:
    assert toml.loads(text.replace("[1, 2.5]", "[1.0, 2.5]")) == tomli.loads(text.replace("[1, 2.5]", "[1.0, 2.5]"))


def test_json_schema_agrees_with_the_validator() -> None:
    checker = jsonschema.Draft4Validator(manifest_schema(KINDS))
    for text in (WHOLE, MINIMAL):
        assert list(checker.iter_errors(tomli.loads(text))) == []
    # What needs no second look at another table is refused by the schema too.
    for name in ("misspelt key", "no source", "targets is text", "opt level", "dialect", "unknown kind key", "no kind"):
        assert list(checker.iter_errors(tomli.loads(WRONG[name][1].replace("^", "", 1)))), name


def test_sources_that_are_no_plain_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "loop.py").symlink_to("loop.py")
    (tmp_path / "file.py").write_text("")
    names = ["pipe.py", "folder.py", "loop.py", "file.py/x.py", "absent/x.py", "n" * 300 + ".py"]
    modules = "".join(f'[[module]]\nname = "m{place}"\nsource = "{name}"\n' for place, name in enumerate(names))
    (tmp_path / "kernels.toml").write_text(MINIMAL.partition("[[module]]")[0] + modules)
    found = missing_sources(load_manifest(tmp_path, KINDS))
    assert {one.code for one in found} == {"GM0116"}
    assert [one.message.partition("`, ")[2].partition(", ")[2] for one in found] == [
        "is no plain file",
        "is a folder",
        "can't be read: Too many levels of symbolic links",
        "does not exist",
        "does not exist",
        "can't be read: File name too long",
    ]
    assert not any("pipe.py" in one.hint or "folder.py" in one.hint for one in found)
