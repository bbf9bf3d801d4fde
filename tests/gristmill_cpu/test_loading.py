"""Loading shared objects out of packs and calling them: checks, lifetimes, mixing, threads, externs."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm_ffi

from gristmill.errors import MissingError, UserError
from gristmill.runtime import LoadedPack, Runtimes
from gristmill.runtime.loading import load

Compile = Callable[..., bytes]
MakePack = Callable[..., bytes]
Source = Callable[[str, int], str]

DOUBLE = """
int __tvm_ffi_double(void* self, const Any* args, int32_t count, Any* result) {
  if (count != 1) { TVMFFIErrorSetRaisedFromCStr("TypeError", "one argument"); return -1; }
  Tensor* t = tensor(args);
  float* data = (float*)((char*)t->data + t->offset);
  for (int64_t i = 0; i < t->shape[0]; ++i) data[i] *= 2;
  return 0;
}
"""

SPIN = """
int __tvm_ffi_spin(void* self, const Any* args, int32_t count, Any* result) {
  volatile int64_t* flag = (int64_t*)tensor(args)->data;
  int64_t limit = args[1].i;
  int64_t turns = 0;
  while (!*flag && turns < limit) ++turns;
  result->kind = 1; result->zero = 0; result->i = *flag;
  return 0;
}
"""


@pytest.fixture
def number_pack(compile_c: Compile, make_pack: MakePack, constant_source: Source) -> Callable[[int], bytes]:
    """A pack whose function ``number`` returns that number."""

    def make(value: int) -> bytes:
        return make_pack((compile_c(constant_source("number", value)), ("number",), {}))

    return make


def test_a_function_takes_numpy_arrays_tensors_and_gristmill_arrays(
    compile_c: Compile, make_pack: MakePack, runtimes: Runtimes
) -> None:
    pack = load(make_pack((compile_c(DOUBLE), ("double",), {})), runtimes=runtimes)
    values = np.arange(4, dtype=np.float32)
    pack.double(values)
    np.testing.assert_array_equal(values, [0, 2, 4, 6])
    pack.double(tvm_ffi.from_dlpack(values))
    np.testing.assert_array_equal(values, [0, 4, 8, 12])
    array = runtimes.device("cpu:0").array(values)
    pack.double(array)
    np.testing.assert_array_equal(array.numpy(), [0, 8, 16, 24])
    np.testing.assert_array_equal(values, [0, 4, 8, 12])
    assert isinstance(pack.double, tvm_ffi.Function)
    with pytest.raises(TypeError, match="one argument"):
        pack.double()


def test_a_function_takes_pytorch_tensors(compile_c: Compile, make_pack: MakePack, runtimes: Runtimes) -> None:
    torch = pytest.importorskip("torch")
    pack = load(make_pack((compile_c(DOUBLE), ("double",), {})), runtimes=runtimes)
    values = torch.arange(4, dtype=torch.float32)
    pack.double(values)
    assert values.tolist() == [0, 2, 4, 6]


# Which code is taken --------------------------------------------------------------------------------------------------


def test_the_best_code_that_fits_is_taken_function_by_function(
    compile_c: Compile, make_pack: MakePack, constant_source: Source, runtimes: Runtimes
) -> None:
    low = compile_c(constant_source("both", 2) + constant_source("low", 20))
    high = compile_c(constant_source("both", 3))
    best = compile_c(constant_source("both", 4))
    pack = load(
        make_pack(
            (low, ("both", "low"), {"target": "cpu:x86-64-v2"}),
            (best, ("both",), {"target": "cpu:x86-64-v4", "requirements": {"cpu_features": "telepathy"}}),
            (high, ("both",), {"target": "cpu:x86-64-v3"}),
        ),
        runtimes=runtimes,
    )
    assert (pack.both(), pack.low()) == (3, 20)
    assert [refusal.reason for refusal in pack.refused] == ["this processor lacks telepathy"]


def test_a_pack_for_other_machines_names_each_and_why(
    compile_c: Compile, make_pack: MakePack, constant_source: Source, runtimes: Runtimes
) -> None:
    data = compile_c(constant_source("f", 1))
    pack = make_pack(
        (data, ("f",), {"target": "cpu:sparc", "host": "sparc64-linux"}),
        (data, ("f",), {"target": "cpu:x86-64-v9", "requirements": {"cpu_features": "avx9,telepathy"}}),
    )
    with pytest.raises(MissingError) as caught:
        load(pack, runtimes=runtimes)
    message = str(caught.value)
    assert "cpu:sparc (elf-shared): it is for sparc64-linux, and this machine is" in message
    assert "cpu:x86-64-v9 (elf-shared): this processor lacks avx9, telepathy" in message


def test_code_of_another_machine_that_lies_is_refused(
    compile_c: Compile, make_pack: MakePack, constant_source: Source, runtimes: Runtimes
) -> None:
    data = bytearray(compile_c(constant_source("f", 1)))
    data[18:20] = (243).to_bytes(2, "little")  # e_machine: RISC-V
    with pytest.raises(UserError, match="GM0714"):
        load(make_pack((bytes(data), ("f",), {})), runtimes=runtimes)


@pytest.mark.parametrize(
    ("source", "options", "code"),
    [
        ("extern int puts(const char*); int f(void) { return puts(0); }", (), "GM0715"),
        ("int f(void) { return 1; }", ("-Wl,--no-as-needed", "-lc"), "GM0711"),
        ("__attribute__((constructor)) void f(void) { *(volatile int*)0 = 1; }", (), "GM0712"),
        ("int f(void) { return 1; }", ("-Wl,-z,execstack",), "GM0713"),
        ("int f(void) { return 1; }", (), "GM0913"),
    ],
)
def test_code_that_may_not_be_loaded_is_not(
    compile_c: Compile, make_pack: MakePack, runtimes: Runtimes, source: str, options: tuple[str, ...], code: str
) -> None:
    with pytest.raises(UserError) as caught:
        load(make_pack((compile_c(source, *options), ("f",), {})), runtimes=runtimes)
    assert caught.value.code == code


def test_bytes_that_are_no_shared_object(make_pack: MakePack, runtimes: Runtimes) -> None:
    with pytest.raises(UserError, match="GM0702"):
        load(make_pack((b"\x7fELF" + bytes(100), ("f",), {})), runtimes=runtimes)


# Lifetimes and mixing -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("without_memory_files", [False, True])
def test_packs_loaded_one_after_the_other_never_mix(
    number_pack: Callable[[int], bytes],
    runtimes: Runtimes,
    without_memory_files: bool,
    request: pytest.FixtureRequest,
) -> None:
    if without_memory_files:
        request.getfixturevalue("no_memory_files")
    packs = [number_pack(value) for value in range(4)]
    for _ in range(10):
        for value, pack in enumerate(packs):
            assert load(pack, runtimes=runtimes).number() == value
    held: list[LoadedPack] = []
    for _ in range(5):
        for value, pack in enumerate(packs):
            held.append(load(pack, runtimes=runtimes))
            assert held[-1].number() == value
        del held[::2]
        gc.collect()
        for loaded in held:
            assert loaded.number() == packs.index(loaded.bytes())


def test_packs_loaded_and_let_go_by_several_threads_never_mix(
    number_pack: Callable[[int], bytes], runtimes: Runtimes
) -> None:
    packs = [number_pack(value) for value in range(4)]
    wrong: list[tuple[int, int]] = []

    def work(start: int) -> None:
        for turn in range(40):
            value = (start + turn) % len(packs)
            found = load(packs[value], runtimes=runtimes).number()
            if found != value:
                wrong.append((value, found))

    threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_descriptor_number_that_is_reused_gives_the_right_library(
    number_pack: Callable[[int], bytes], runtimes: Runtimes, memory_files: Callable[[], set[str]]
) -> None:
    """As in a process that closes all its descriptors: the loader knows the old library by the same name."""
    before = memory_files()
    first = load(number_pack(1), runtimes=runtimes)
    assert first.number() == 1
    (number,) = memory_files() - before
    os.close(int(number))
    second = load(number_pack(2), runtimes=runtimes)
    assert (first.number(), second.number()) == (1, 2)
    third = load(number_pack(3), runtimes=runtimes)
    assert (first.number(), second.number(), third.number()) == (1, 2, 3)
    # Let the number be somebody else's: it stays so when the first library goes.
    spare = os.open(os.devnull, os.O_RDONLY)
    stranger = os.dup2(spare, int(number)) if spare != int(number) else spare
    del first
    gc.collect()
    assert os.path.samestat(os.fstat(stranger), os.stat(os.devnull))
    assert (second.number(), third.number()) == (2, 3)
    for descriptor in {spare, stranger}:
        os.close(descriptor)


def test_a_library_is_unloaded_with_its_last_function(
    number_pack: Callable[[int], bytes], runtimes: Runtimes, memory_files: Callable[[], set[str]]
) -> None:
    before = memory_files()

    def mapped() -> int:
        return Path("/proc/self/maps").read_text().count("memfd:")

    at_first = mapped()
    pack = load(number_pack(7), runtimes=runtimes)
    function = pack.number
    del pack
    gc.collect()
    assert function() == 7
    assert len(memory_files() - before) == 1
    assert mapped() > at_first
    del function
    gc.collect()
    assert memory_files() == before
    assert mapped() == at_first


def test_the_memory_file_is_sealed(
    number_pack: Callable[[int], bytes], runtimes: Runtimes, memory_files: Callable[[], set[str]]
) -> None:
    before = memory_files()
    pack = load(number_pack(7), runtimes=runtimes)
    (number,) = memory_files() - before
    with pytest.raises(PermissionError):
        os.pwrite(int(number), b"x", 0)
    assert pack.number() == 7


def test_temporary_files_are_gone_once_loaded(
    number_pack: Callable[[int], bytes],
    runtimes: Runtimes,
    no_memory_files: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pack = load(number_pack(9), runtimes=runtimes)
    assert pack.number() == 9
    assert list(tmp_path.iterdir()) == []


def test_a_system_that_will_not_load_says_so(
    number_pack: Callable[[int], bytes], runtimes: Runtimes, no_memory_files: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nowhere/at/all")
    with pytest.raises(UserError, match=r"GM0913.*the system does not load it"):
        load(number_pack(9), runtimes=runtimes)


def test_a_forked_child_calls_and_loads(number_pack: Callable[[int], bytes], tmp_path: Path) -> None:
    for value in (1, 2):
        (tmp_path / f"{value}.kpack").write_bytes(number_pack(value))
    program = (
        "import os, sys, gristmill\n"
        "first = gristmill.load('1.kpack')\n"
        "assert first.number() == 1\n"
        "child = os.fork()\n"
        "second = gristmill.load('2.kpack')\n"
        "good = (first.number(), second.number()) == (1, 2)\n"
        "if not child: os._exit(0 if good else 1)\n"
        "sys.exit(0 if good and os.waitpid(child, 0)[1] == 0 else 1)\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)


def test_a_process_ends_well_with_packs_loaded(number_pack: Callable[[int], bytes], tmp_path: Path) -> None:
    (tmp_path / "1.kpack").write_bytes(number_pack(1))
    program = (
        "import gristmill, threading\npack = gristmill.load('1.kpack')\nf = pack.number\n"
        "a = gristmill.device('cpu:0').empty((4,), 'bfloat16')\nprint(f())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("1\n", "")


# Threads and the interpreter lock -------------------------------------------------------------------------------------


def test_eight_threads_call_at_once(compile_c: Compile, make_pack: MakePack, runtimes: Runtimes) -> None:
    for release_gil in (False, True):
        pack = load(make_pack((compile_c(DOUBLE), ("double",), {}), release_gil=release_gil), runtimes=runtimes)
        arrays = [np.full(1000, index, np.float32) for index in range(8)]

        def work(array: np.ndarray, function: Any = pack.double) -> None:
            for _ in range(10):
                function(array)

        threads = [threading.Thread(target=work, args=(array,)) for array in arrays]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for index, array in enumerate(arrays):
            np.testing.assert_array_equal(array, np.full(1000, index * 1024, np.float32))


def test_only_a_function_that_says_so_lets_other_threads_run(
    compile_c: Compile, make_pack: MakePack, runtimes: Runtimes
) -> None:
    """The function spins until another thread has set a flag, which that can do only while the lock is released."""
    releasing = load(make_pack((compile_c(SPIN), ("spin",), {}), release_gil=True), runtimes=runtimes).spin
    keeping = load(make_pack((compile_c(SPIN), ("spin",), {})), runtimes=runtimes).spin
    assert (releasing.release_gil, keeping.release_gil) == (True, False)
    # No thread is made to give the lock up in this test: it changes hands only where somebody waits or releases it.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        for function, turns, expected in ((releasing, 1 << 62, 1), (keeping, 1 << 20, 0)):
            flag = np.zeros(1, np.int64)
            begun = threading.Event()

            def set_flag(flag: np.ndarray = flag, begun: threading.Event = begun) -> None:
                begun.wait()
                flag[0] = 1

            thread = threading.Thread(target=set_flag)
            thread.start()
            begun.set()
            found = function(flag, turns)
            thread.join()
            assert (found, flag[0]) == (expected, 1)
    finally:
        sys.setswitchinterval(interval)


# Externs --------------------------------------------------------------------------------------------------------------

EXTERN = """
typedef struct { const char *symbol, *library; void* slot; } Extern;
static int64_t (*function)(int64_t);
__attribute__((visibility("default"))) const Extern __gristmill_externs[] = {
  { "%s", "%s", &function }, { 0, 0, 0 } };
int __tvm_ffi_ask(void* self, const Any* args, int32_t count, Any* result) {
  result->kind = 1; result->zero = 0; result->i = function(args[0].i); return 0;
}
"""


def test_an_extern_comes_from_the_library_that_the_pack_names(
    compile_c: Compile, make_pack: MakePack, runtimes: Runtimes
) -> None:
    pack = load(make_pack((compile_c(EXTERN % ("labs", "libc.so.6")), ("ask",), {})), runtimes=runtimes)
    assert pack.ask(-5) == 5


def test_an_extern_comes_from_the_caller(compile_c: Compile, make_pack: MakePack, runtimes: Runtimes) -> None:
    callback = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda value: value * 100)
    data = make_pack((compile_c(EXTERN % ("not_anywhere", "libnowhere.so")), ("ask",), {}))
    pack = load(data, runtimes=runtimes, externs={"not_anywhere": callback, "unused": 1})
    assert pack.ask(3) == 300


@pytest.mark.parametrize(
    ("symbol", "library", "expected"),
    [
        ("labs", "libnowhere.so.3", "labs.* of `libnowhere.so.3`.*cannot open shared object"),
        ("not_anywhere", "libc.so.6", "the library has no such function"),
        ("labs", "./libc.so.6", "a library is named by its file name or an absolute path"),
    ],
)
def test_an_extern_that_cannot_be_had(
    compile_c: Compile, make_pack: MakePack, runtimes: Runtimes, symbol: str, library: str, expected: str
) -> None:
    with pytest.raises(MissingError, match=f"GM0911.*{expected}"):
        load(make_pack((compile_c(EXTERN % (symbol, library)), ("ask",), {})), runtimes=runtimes)
