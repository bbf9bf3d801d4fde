"""Loading packs: from where, onto what, and what is said when it cannot be."""

from __future__ import annotations

import ctypes
import importlib
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gristmill
from gristmill.errors import EXIT_MISSING, MissingError, PluginError, UserError
from gristmill.pack import open_pack, write_pack
from gristmill.plugin.hookspecs import hookimpl
from gristmill.plugin.protocols import DeviceDescription, Probe
from gristmill.plugin.registry import Registry
from gristmill.runtime import Runtimes, null
from gristmill.runtime.loading import load
from gristmill.runtime.null import NullCode, NullDevice, NullRuntime

MakePack = Callable[..., bytes]


def test_a_pack_loads_from_bytes_and_from_a_path(make_pack: MakePack, runtimes: Runtimes, tmp_path: Path) -> None:
    data = make_pack()
    path = tmp_path / "module.kpack"
    path.write_bytes(data)
    for source in (data, bytearray(data), memoryview(data), path, str(path)):
        pack = load(source, runtimes=runtimes)
        assert pack.nothing() is None
        assert pack.bytes() == data
        assert list(pack.functions) == ["nothing", "pair"]
        assert pack.functions["pair"].signature == "pair(a, b)"


def test_a_changed_buffer_does_not_change_a_loaded_pack(make_pack: MakePack, runtimes: Runtimes) -> None:
    data = bytearray(make_pack())
    pack = load(data, runtimes=runtimes)
    before = bytes(data)
    data[:] = bytes(len(data))
    assert pack.bytes() == before


def test_the_face_is_where_it_is_said_to_be() -> None:
    assert gristmill.load is load


def test_attributes_are_looked_up_once(make_pack: MakePack, runtimes: Runtimes) -> None:
    pack = load(make_pack(), runtimes=runtimes)
    assert "pair" not in vars(pack)
    first = pack.pair
    assert vars(pack)["pair"] is first
    assert pack.pair is first
    assert {"pair", "nothing", "functions", "inspect"} <= set(dir(pack))


def test_help_shows_signatures(make_pack: MakePack, runtimes: Runtimes, capsys: pytest.CaptureFixture[str]) -> None:
    pack = load(make_pack(), runtimes=runtimes)
    assert pack.pair.__doc__ == "pair(a, b)"
    assert pack.pair.__name__ == "pair"
    help(pack.pair)
    assert "pair(a, b)" in capsys.readouterr().out
    help(pack)
    assert "nothing()\n" in capsys.readouterr().out


def test_an_unknown_function_gets_the_close_one(make_pack: MakePack, runtimes: Runtimes) -> None:
    pack = load(make_pack(), runtimes=runtimes)
    with pytest.raises(AttributeError, match="has no function 'pear'; did you mean 'pair'"):
        _ = pack.pear
    with pytest.raises(AttributeError, match="it has nothing, pair"):
        _ = pack.xyzzy
    with pytest.raises(KeyError, match="did you mean 'pair'"):
        pack["pear"]
    assert not hasattr(pack, "__wrapped__")


def test_a_function_with_the_name_of_a_method_is_reached_by_item(make_pack: MakePack, runtimes: Runtimes) -> None:
    pack = load(make_pack(save=1), runtimes=runtimes)
    assert pack["save"](1) is None
    assert callable(pack.save)


def test_texts_and_saving(make_pack: MakePack, runtimes: Runtimes, tmp_path: Path) -> None:
    pack = load(make_pack(), runtimes=runtimes)
    assert pack.inspect() == {"ir/module.gmir": "gristmill ir 1\n"}
    assert pack.inspect("ir-text") == pack.inspect()
    assert pack.inspect("assembly") == {}
    pack.save(tmp_path / "copy.kpack")
    assert (tmp_path / "copy.kpack").read_bytes() == pack.bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["copy.kpack"]
    assert repr(pack) == "<gristmill pack the pack: nothing, pair; on null:0>"


def test_a_pack_of_which_nothing_runs_here_names_every_variant_and_its_reason(
    make_pack: MakePack, runtimes: Runtimes
) -> None:
    data = make_pack(
        ("spirv", "vulkan:1.3", {"wants": "float16"}),
        ("hsaco", "amdgpu:gfx942", {}),
        ("wasm", "browser", {}),
        ("metal", "apple", {}),
        ("null", "null", {"speed": 3}),
    )
    pack = load(data, runtimes=runtimes)
    assert pack.devices == ()
    with pytest.raises(MissingError) as caught:
        pack.nothing()
    error = caught.value
    assert error.code == "GM0901"
    assert error.exit_status == EXIT_MISSING
    assert error.diagnostic.message.splitlines() == [
        "the pack has no code that runs here",
        "  vulkan:1.3 (spirv): the device has no float16",
        "  amdgpu:gfx942 (hsaco): the absent runtime has no device: no driver is installed",
        "  browser (wasm): no installed runtime takes code of kind wasm",
        "  apple (metal): the broken runtime has no device: "
        "[GM1012] plugin 'runtimes_of_tests' (runtimes_of_tests) failed: "
        "looking for devices raised OSError: the driver is on fire",
        "  null (null): it requires speed, which the null device does not have",
    ]


def test_a_pack_that_only_lacks_a_device_loads_and_says_so_when_it_is_called(
    make_pack: MakePack, runtimes: Runtimes
) -> None:
    pack = load(make_pack(("hsaco", "amdgpu:gfx942", {})), runtimes=runtimes)
    assert (pack.devices, pack.refused[0].reason) == (
        (),
        "the absent runtime has no device: no driver is installed",
    )
    assert list(pack.functions) == ["nothing", "pair"]
    assert repr(pack).endswith("nothing, pair; on no device>")
    pair = pack.pair
    assert pair.__doc__ == "pair(a, b)"
    assert repr(pair) == "<function pair, with no device to run on>"
    for _ in range(2):
        with pytest.raises(MissingError, match="GM0901") as caught:
            pair(1, 2)
        assert "  amdgpu:gfx942 (hsaco): the absent runtime has no device: no driver is installed" in str(caught.value)
    with pytest.raises(AttributeError, match="has no function 'pear'"):
        _ = pack.pear
    assert pack.inspect("ir-text")


def test_a_code_that_is_refused_for_itself_does_not_load(make_pack: MakePack, runtimes: Runtimes) -> None:
    with pytest.raises(MissingError, match="the device has no float16"):
        load(make_pack(("spirv", "vulkan:1.3", {"wants": "float16"})), runtimes=runtimes)


class LargeOrSmall(NullDevice):
    """Of three devices the first runs no code that needs a large one."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index = index
        self.name = f"null:{index}"

    def refusal(self, kind: str, target: str, host: str, requirements: Any) -> str:
        return "the device is small" if self.index == 0 and "large" in target else ""


class SeveralDevices(NullRuntime):
    def probe(self) -> Probe:
        return Probe(tuple(DeviceDescription(number, f"number {number}") for number in range(3)))

    def open(self, index: int) -> Any:
        return LargeOrSmall(index)


def several_devices() -> Runtimes:
    module = ModuleType("runtimes_of_several_devices")
    module.GRISTMILL_API_VERSION = 1  # type: ignore[attr-defined]
    module.gristmill_runtimes = hookimpl(lambda: [SeveralDevices])  # type: ignore[attr-defined]
    return Runtimes(Registry.of([module]))


def test_the_first_device_that_runs_some_code_is_taken(make_pack: MakePack) -> None:
    runtimes = several_devices()
    assert load(make_pack(("null", "large", {})), runtimes=runtimes).devices == ("null:1",)
    assert load(make_pack(("null", "large", {})), runtimes=runtimes, device="null:2").devices == ("null:2",)
    both = load(make_pack(("null", "large", {}), ("null", "any", {})), runtimes=runtimes)
    assert both.devices == ("null:0",)
    assert [(each.member.target, each.reason) for each in both.refused] == [("large", "the device is small")]


def test_a_device_that_was_asked_for_says_what_it_lacks(make_pack: MakePack) -> None:
    with pytest.raises(MissingError, match=r"large \(null\): the device is small"):
        load(make_pack(("null", "large", {})), runtimes=several_devices(), device="null:0")


def test_a_pack_without_code(make_pack: MakePack, runtimes: Runtimes) -> None:
    from gristmill.pack import Manifest, write_pack

    with pytest.raises(MissingError, match="it holds no code at all"):
        load(write_pack(Manifest("p", "m"), {}), runtimes=runtimes)


def test_what_is_refused_is_kept_beside_what_runs(make_pack: MakePack, runtimes: Runtimes) -> None:
    pack = load(make_pack(("null", "null", {}), ("hsaco", "amdgpu:gfx942", {})), runtimes=runtimes)
    (refusal,) = pack.refused
    assert refusal.member.target == "amdgpu:gfx942"
    assert "no driver" in refusal.reason
    assert pack.devices == ("null:0",)


def test_damage_is_found_before_code_is_loaded(make_pack: MakePack, runtimes: Runtimes) -> None:
    data = bytearray(make_pack())
    at = bytes(data).rindex(b"null code")
    data[at] ^= 1
    with pytest.raises(UserError, match="GM0808"):
        load(bytes(data), runtimes=runtimes)
    with pytest.raises(UserError, match="GM0912"):
        load(make_pack(data=b"something else"), runtimes=runtimes)


def test_a_device_that_is_asked_for_is_the_only_one(make_pack: MakePack, runtimes: Runtimes) -> None:
    data = make_pack(("null", "null", {}), ("second", "second", {}))
    assert load(data, runtimes=runtimes).devices == ("null:0", "second:0")
    assert load(data, device="second:0", runtimes=runtimes).devices == ("second:0",)
    assert load(data, device=runtimes.device("null"), runtimes=runtimes).devices == ("null:0",)
    with pytest.raises(MissingError, match="the picky runtime does not take code of kind null"):
        load(data, device=_named("picky:0"), runtimes=runtimes)
    with pytest.raises(MissingError, match="GM0905"):
        load(data, device="null:3", runtimes=runtimes)


def _named(name: str) -> object:
    class Named:
        pass

    found = Named()
    found.name = name  # type: ignore[attr-defined]
    return found


def test_the_first_array_decides_which_code_is_called(make_pack: MakePack, runtimes: Runtimes) -> None:
    pack = load(make_pack(("null", "null", {}), ("second", "second", {})), runtimes=runtimes)
    called = []
    dispatch = pack.pair
    dispatch.functions = {kind: lambda *args, kind=kind: called.append(kind) for kind in dispatch.functions}
    pack.pair(1, runtimes.device("null").empty((2,), "float32"))
    pack.pair(np.zeros(2), 1.0)
    pack.pair(1, 2)
    assert called == [12, 1, 1]

    class Elsewhere:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

    with pytest.raises(UserError, match=r"GM0909.*pair has no code for arrays of DLPack device type 2; .* 1, 12"):
        pack.pair(Elsewhere(), 1)


# Packages -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_pack: MakePack) -> Path:
    folder = tmp_path / "kitofpacks"
    (folder / "_kernels").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "_kernels" / "blur.kpack").write_bytes(make_pack())
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield folder
    sys.modules.pop("kitofpacks", None)


def test_a_pack_of_a_package(package: Path, runtimes: Runtimes) -> None:
    pack = load("kitofpacks:blur", runtimes=runtimes)
    assert pack.name == "kitofpacks:blur"
    assert pack.nothing() is None


def test_a_pack_of_a_zipped_package(
    package: Path, runtimes: Runtimes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "zipped.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        for path in package.rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                opened.write(path, path.relative_to(tmp_path).as_posix().replace("kitofpacks", "zippedkit"))
    monkeypatch.syspath_prepend(str(archive))
    importlib.invalidate_caches()
    assert load("zippedkit:blur", runtimes=runtimes).nothing() is None
    sys.modules.pop("zippedkit", None)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("kitofpacks:blurr", "the package 'kitofpacks' has no pack 'blurr'.*did you mean `kitofpacks:blur`"),
        ("nosuchpackage:blur", "the package 'nosuchpackage' cannot be imported: No module named"),
        ("json:blur", "the package 'json' has no pack 'blur'.*gristmill build -o json/_kernels"),
    ],
)
def test_a_package_or_pack_that_is_not_there(package: Path, runtimes: Runtimes, source: str, expected: str) -> None:
    with pytest.raises(UserError, match=f"(?s)GM0903.*{expected}"):
        load(source, runtimes=runtimes)


def test_a_file_that_is_not_there(runtimes: Runtimes) -> None:
    with pytest.raises(UserError, match="GM0811"):
        load("nowhere/module.kpack", runtimes=runtimes)


# Externs --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["text", 0, -1, 1 << 64, 1.5, True, None])
def test_an_extern_that_is_no_function(make_pack: MakePack, runtimes: Runtimes, given: object) -> None:
    with pytest.raises(UserError, match=r"GM0910.*the extern 'f' is"):
        load(make_pack(), runtimes=runtimes, externs={"f": given})


def test_externs_as_numbers_and_ctypes_functions(
    make_pack: MakePack, runtimes: Runtimes, monkeypatch: pytest.MonkeyPatch
) -> None:
    callback = ctypes.CFUNCTYPE(None)(lambda: None)
    given = {"f": 4096, "g": callback, "h": ctypes.pythonapi.Py_IncRef}
    found: dict[str, int] = {}
    load_code = NullDevice.load

    def note(device: NullDevice, *arguments: Any) -> NullCode:
        found.update(arguments[-1])
        return load_code(device, *arguments)

    monkeypatch.setattr(NullDevice, "load", note)
    load(make_pack(), runtimes=runtimes, externs=given)
    addresses = [ctypes.cast(function, ctypes.c_void_p).value for function in (callback, ctypes.pythonapi.Py_IncRef)]
    assert found == {"f": 4096, "g": addresses[0], "h": addresses[1]}


class _Faulty(NullRuntime):
    """As null, for code that the null runtime takes too."""

    name = "faulty"


def _raise(*arguments: object) -> None:
    raise OSError("the driver is on fire")


@pytest.mark.parametrize("broken", ["open", "load"])
def test_a_broken_runtime_stops_no_other(broken: str, make_pack: MakePack, monkeypatch: pytest.MonkeyPatch) -> None:
    if broken == "open":
        monkeypatch.setattr(_Faulty, "open", _raise)
    else:
        faulty_device = type("Device", (NullDevice,), {"name": "faulty:0", "load": _raise})
        monkeypatch.setattr(_Faulty, "open", lambda runtime, index: faulty_device())
    faulty = ModuleType("faulty_plugin")
    faulty.GRISTMILL_API_VERSION = 1  # type: ignore[attr-defined]
    faulty.gristmill_runtimes = hookimpl(_gives_faulty)  # type: ignore[attr-defined]
    pack = load(make_pack(), runtimes=Runtimes(Registry.of([null, faulty])))
    assert pack.devices == ("null:0",)
    assert pack.nothing() is None
    (refusal,) = pack.refused
    assert "plugin 'faulty_plugin' (faulty_plugin) failed: " in refusal.reason
    with pytest.raises(PluginError, match="faulty_plugin"):
        load(make_pack(), runtimes=Runtimes(Registry.of([faulty])))
    with pytest.raises(PluginError, match="faulty_plugin"):
        load(make_pack(), device="faulty:0", runtimes=Runtimes(Registry.of([null, faulty])))


def _gives_faulty() -> list[type]:
    return [_Faulty]


_gives_faulty.__name__ = "gristmill_runtimes"


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"name": 3}, "`name` is no printable text"),
        ({"name": ""}, "`name` is no printable text"),
        ({"name": "a\x1b[2J"}, "`name` is no printable text"),
        ({"name": "pair"}, "has two records of `pair`"),
        ({"entry": None}, "`entry` is no printable text"),
        ({"entry": "printf"}, "names the entry point `printf`, which the code does not have"),
        ({"arguments": 3}, "`arguments` is no list"),
        ({"arguments": [1]}, "`arguments[0]` is no object"),
        ({"arguments": [{"name": 1}]}, "`arguments[0]` has a name, kind or dtype that is no text"),
        ({"arguments": [{"written": "yes"}]}, "`written` is not true or false"),
        ({"axes": [1]}, "`axes` is no list of texts"),
        ({"block": [1, 2]}, "`block` has not three sizes"),
        ({"block": [1, 2, "3"]}, "`block` is no integer from 0 to 4294967295"),
        ({"block": [1, 2, -3]}, "`block` is no integer from 0 to 4294967295"),
        ({"block": [1, 2, 10**18]}, "`block` is no integer from 0 to 4294967295"),
        ({"shared_bytes": True}, "`shared_bytes` is no integer"),
        ({"dynamic_shared": 1}, "`dynamic_shared` is not true or false"),
        ({"extra": []}, "`extra` is no object"),
        ({"extra": {"a": {"b": 1}}}, "`extra.a` is no text, number, true or false"),
    ],
    ids=str,
)
def test_records_are_read_strictly(
    change: dict[str, object], wrong: str, make_pack: MakePack, runtimes: Runtimes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_pack(make_pack()) as reader:
        (blob,) = reader.manifest.blobs
        first, second = blob.kernels
        changed = replace(blob, kernels=({**first, **change}, second))
        contents = {member.name: bytes(reader.blob(member)) for member in reader.manifest.members}
        damaged = write_pack(replace(reader.manifest, blobs=(changed,)), contents)
    monkeypatch.setattr(NullDevice, "load", _raise)
    with pytest.raises(UserError) as caught:
        load(damaged, runtimes=runtimes)
    assert caught.value.code == "GM0914"
    assert wrong in str(caught.value)
