"""The symbols that an object or a shared library still needs: those that compilers make, and damaged ones."""

import subprocess
from pathlib import Path
from shutil import which

import pytest

from streaming.deploy.elf import undefined_symbols
from streaming.deploy.wasm import imported_functions

SOURCE = """
double cosh(double);
extern int counter;
__attribute__((weak)) int perhaps(void);
static int inside(int a) { return a * counter; }
int outside(int a) { return inside(a) + (int)cosh(a) + (perhaps ? perhaps() : 0); }
"""
NEEDED = {"cosh", "counter", "perhaps"}
COMPILERS = ("cc", "clang", "aarch64-linux-gnu-gcc", "arm-linux-gnueabihf-gcc")
"""Files of 64 and 32 bits."""


@pytest.fixture(params=COMPILERS)
def compiler(request: pytest.FixtureRequest) -> str:
    if which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return request.param


def compile_source(compiler: str, folder: Path, *options: str) -> bytes:
    """The file that a compiler makes."""
    source, binary = folder / "one.c", folder / "one"
    source.write_text(SOURCE)
    subprocess.run((compiler, "-O1", *options, source, "-o", binary), check=True)
    return binary.read_bytes()


def test_undefined_symbols_of_an_object_are_listed(compiler: str, tmp_path: Path) -> None:
    symbols = undefined_symbols(compile_source(compiler, tmp_path, "-c", "-fno-pic"))
    assert symbols == NEEDED


@pytest.mark.parametrize("stripped", [(), ("-Wl,-s",)])
def test_undefined_symbols_of_a_shared_library_are_listed(
    compiler: str, stripped: tuple[str, ...], tmp_path: Path
) -> None:
    """Its loader's symbols, without versions of glibc; those for linkers may be stripped."""
    options = ("-shared", "-fPIC", "-nostartfiles", *stripped, "-Wl,--no-as-needed", "-lm")
    symbols = undefined_symbols(compile_source(compiler, tmp_path, *options))
    assert symbols == NEEDED


def test_imports_of_a_webassembly_module_are_listed() -> None:
    """Imports of all kinds: a memory, a table and a global are no functions."""
    imports = [b"\x02\x00\x01", b"\x01\x70\x01\x01\x02", b"\x03\x7f\x01", b"\x00\x00", b"\x00\x81\x01"]
    names = [b"memory", b"table", b"global", b"cosh", b"sinf"]
    entries = [b"\x03env" + bytes([len(name)]) + name + kind for name, kind in zip(names, imports)]
    section = bytes([len(entries)]) + b"".join(entries)
    data = b"\0asm\1\0\0\0" + b"\x01\x01\x00" + b"\x02" + bytes([len(section)]) + section
    assert imported_functions(data) == {"cosh", "sinf"}
    assert imported_functions(data[:8]) == set()
    with pytest.raises(ValueError, match="truncated"):
        imported_functions(data[:-3])
    with pytest.raises(ValueError, match="not a WebAssembly file"):
        imported_functions(b"")


def test_files_of_another_kind_have_no_list() -> None:
    assert undefined_symbols(b"\0asm\1\0\0\0") is None
    assert undefined_symbols(b"") is None


def test_a_damaged_file_is_refused_or_has_fewer_names(tmp_path: Path) -> None:
    """Cut anywhere, it is an error or has fewer names; never another exception."""
    if which("cc") is None:
        pytest.skip("cc is not installed")
    whole = compile_source("cc", tmp_path, "-c")
    with pytest.raises(ValueError, match="an ELF file of 40 bytes is truncated or damaged"):
        undefined_symbols(whole[:40])
    refused = 0
    for length in range(4, len(whole), 7):
        try:
            assert (undefined_symbols(whole[:length]) or set()) <= NEEDED | {"_GLOBAL_OFFSET_TABLE_"}
        except ValueError:
            refused += 1
    assert refused > 100
