"""The file of a compiled function: plain data, and a checksum over all of it.

MAGIC with the number of the format, 32 bytes of checksum (BLAKE2b of what follows), 4 bytes with the length of the
header, the header as JSON (versions, processor, name and fingerprint of the function, symbol, needs), object code.
"""

import json
import os
import shutil
import stat
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pulse.jit.storage.cache import distrust_reason, is_shared, make_folder
from pulse.support.record import record
from pulse.support.replaced_file import replace_file

KIND = b"pulse kernel "
MAGIC = KIND + b"1\n"
CHECKSUM_BYTES, LENGTH_BYTES = 32, 4
MAX_BYTES = 1 << 24
"""Maximum number of bytes of a file; larger ones are refused. The largest kernels have 70 KB."""
READ_FLAGS = sum(getattr(os, name, 0) for name in ("O_RDONLY", "O_BINARY", "O_NOFOLLOW", "O_NONBLOCK"))


@record
class NativeCode:
    """A compiled function.

    symbol  the name of the function in the object code
    needs   the names of the C functions that it calls
    object  ELF, Mach-O or COFF, as LLVM emits it
    """

    symbol: str
    needs: tuple[str, ...]
    object: bytes


class DamagedError(Exception):
    """Raised if a file is not used, with the reason."""


def read(path: Path, versions: dict[str, Any], function: dict[str, str]) -> NativeCode | None:
    """Read the code of a file; None if it is missing or of other versions.

    function  its name and fingerprint
    Raises    DamagedError: the file has other content, or others may have written it
    """
    try:
        data = _read_bytes(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DamagedError(f"cannot be read: {error.strerror}") from error
    return decode(data, versions, function)


def write(path: Path, code: NativeCode, versions: dict[str, Any], function: dict[str, str]) -> None:
    """Write a file atomically, replacing an existing one. Raises OSError: it cannot be written."""
    data = _encode(code, versions, function)
    make_folder(path.parent)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    replace_file(path, data, 0o666 if is_shared() else 0o600)


def _read_bytes(path: Path) -> bytes:
    """Read the content once.

    Raises OSError: it cannot be read; DamagedError: it is not a file, too large, or not trusted
    """
    with open(path, "rb", opener=lambda name, _: os.open(name, READ_FLAGS)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise DamagedError("not a file")
        if reason := distrust_reason(status):
            raise DamagedError(reason)
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise DamagedError(f"has more than {MAX_BYTES:,} bytes")
    return data


def _encode(code: NativeCode, versions: dict[str, Any], function: dict[str, str]) -> bytes:
    header = {"versions": versions, "function": function, "symbol": code.symbol, "needs": code.needs}
    text = json.dumps(header).encode()
    body = len(text).to_bytes(LENGTH_BYTES, "big") + text + code.object
    return MAGIC + _checksum(body) + body


def _checksum(body: bytes) -> bytes:
    return blake2b(body, digest_size=CHECKSUM_BYTES).digest()


def decode(data: bytes, versions: dict[str, Any], function: dict[str, str]) -> NativeCode | None:
    """Decode the content of a file as ``read`` does."""
    if not data.startswith(MAGIC):
        if data.startswith(KIND):
            return None
        raise DamagedError("not a kernel file")
    checksum, body = data[len(MAGIC) :][:CHECKSUM_BYTES], data[len(MAGIC) + CHECKSUM_BYTES :]
    if checksum != _checksum(body):
        raise DamagedError("its checksum is wrong")
    end = LENGTH_BYTES + int.from_bytes(body[:LENGTH_BYTES], "big")
    header: dict[str, Any] = json.loads(body[LENGTH_BYTES:end])
    if header["versions"] != versions:
        return None
    if header["function"] != function:
        raise DamagedError(f"contains another function, {header['function']['name']}")
    return NativeCode(header["symbol"], tuple(header["needs"]), body[end:])
