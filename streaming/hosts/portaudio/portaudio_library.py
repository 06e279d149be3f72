"""PortAudio's C library: its location, its functions' signatures, and further copies of it."""

import ctypes
import os
import sys
import tempfile
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_long, c_ulong, c_void_p
from ctypes.util import find_library
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from pulse.support.not_copyable import NotCopyable
from streaming.errors import DeviceError

FLOAT32 = 1
"""PortAudio's number of the sample format."""
JACK_HOST_API = 12
"""PortAudio's number of the host API."""
HOST_ERROR, INVALID_CHANNELS, INVALID_RATE, INVALID_DEVICE = -9999, -9998, -9997, -9996
UNFIT_DEVICES, NO_MEMORY, TIMED_OUT, UNAVAILABLE = -9993, -9992, -9987, -9985
"""PortAudio's error codes."""

INSTALL_ADVICE = (
    "live audio needs the PortAudio library, which pip does not install on Linux: apt install libportaudio2 "
    "(Fedora: dnf install portaudio; Arch: pacman -S portaudio); files and the virtual device work without it"
)


class DeviceInfo(ctypes.Structure):
    """PaDeviceInfo; latencies in seconds."""

    host_api: int
    _fields_ = (
        ("version", c_int),
        ("name", c_char_p),
        ("host_api", c_int),
        ("inputs", c_int),
        ("outputs", c_int),
        ("low_input_s", c_double),
        ("low_output_s", c_double),
        ("high_input_s", c_double),
        ("high_output_s", c_double),
        ("rate_hz", c_double),
    )


class HostApiInfo(ctypes.Structure):
    """PaHostApiInfo."""

    _fields_ = (
        ("version", c_int),
        ("kind", c_int),
        ("name", c_char_p),
        ("devices", c_int),
        ("default_input", c_int),
        ("default_output", c_int),
    )


class StreamParameters(ctypes.Structure):
    """PaStreamParameters, of one direction."""

    _fields_ = (
        ("device", c_int),
        ("channels", c_int),
        ("format", c_ulong),
        ("latency_s", c_double),
        ("special", c_void_p),
    )


class StreamInfo(ctypes.Structure):
    """PaStreamInfo."""

    _fields_ = (("version", c_int), ("input_s", c_double), ("output_s", c_double), ("rate_hz", c_double))


class HostErrorInfo(ctypes.Structure):
    """PaHostErrorInfo."""

    _fields_ = (("kind", c_int), ("code", c_long), ("text", c_char_p))


_PARAMETERS = POINTER(StreamParameters)
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "Initialize": (c_int, ()),
    "Terminate": (c_int, ()),
    "GetVersionText": (c_char_p, ()),
    "GetErrorText": (c_char_p, (c_int,)),
    "GetLastHostErrorInfo": (POINTER(HostErrorInfo), ()),
    "GetDeviceCount": (c_int, ()),
    "GetDeviceInfo": (POINTER(DeviceInfo), (c_int,)),
    "GetDefaultInputDevice": (c_int, ()),
    "GetDefaultOutputDevice": (c_int, ()),
    "GetHostApiCount": (c_int, ()),
    "GetHostApiInfo": (POINTER(HostApiInfo), (c_int,)),
    "IsFormatSupported": (c_int, (_PARAMETERS, _PARAMETERS, c_double)),
    "OpenStream": (
        c_int,
        (POINTER(c_void_p), _PARAMETERS, _PARAMETERS, c_double, c_ulong, c_ulong, c_void_p, c_void_p),
    ),
    "SetStreamFinishedCallback": (c_int, (c_void_p, c_void_p)),
    "GetStreamInfo": (POINTER(StreamInfo), (c_void_p,)),
    "StartStream": (c_int, (c_void_p,)),
    "StopStream": (c_int, (c_void_p,)),
    "CloseStream": (c_int, (c_void_p,)),
    "IsStreamActive": (c_int, (c_void_p,)),
}
"""Name without ``Pa_`` -> result and arguments."""


class PortAudioLibrary(NotCopyable, reason="it is a library of this process; load it in the other one"):
    """One copy of the library in this process; it is never unloaded, since its threads may outlive their use.

    name    its name for the dynamic linker; by default that of PortAudio
    Raises  DeviceError: not found, or not PortAudio
    """

    def __init__(self, name: str | None = None) -> None:
        name = library_path() if name is None else name
        try:
            self._dll = ctypes.CDLL(name)
            functions: dict[str, Any] = {name: getattr(self._dll, f"Pa_{name}") for name in _FUNCTIONS}
        except (OSError, AttributeError) as error:
            raise DeviceError(f"{name}: cannot be loaded as PortAudio ({error}); {INSTALL_ADVICE}") from error
        for name, function in functions.items():
            function.restype, function.argtypes = _FUNCTIONS[name]
        self._functions = functions
        self._origin: Path | None = None

    def __getattr__(self, name: str) -> Any:
        """Return a function of PortAudio, its name without ``Pa_``."""
        functions: dict[str, Any] = self.__dict__.get("_functions", {})
        if name not in functions:
            raise AttributeError(name)
        return functions[name]

    @property
    def is_initialised(self) -> bool:
        """Whether anyone in this process has this copy initialised."""
        return self.GetDeviceCount() >= 0

    def load_another_copy(self) -> "PortAudioLibrary":
        """Load another copy, with separate state.

        Raises DeviceError: it cannot be loaded, or shares the state of the first
        """
        try:
            origin = self._origin or _file_of(self._dll)
            copy = PortAudioLibrary(_copy(origin))
        except OSError as error:
            raise DeviceError(
                f"PortAudio cannot be loaded again ({error}); start the program again"
            ) from error
        copy._origin = origin
        if copy.is_initialised:
            raise DeviceError(f"{origin}: all copies share one state here; start the program again")
        return copy


def library_path() -> str:
    """Return PortAudio's name or file, as sounddevice finds it. Raises DeviceError: it is not installed."""
    for name in ("portaudio", "bin\\libportaudio-2.dll", "lib/libportaudio.dylib"):
        path = find_library(name)
        if path is not None:
            return path
    for folder in _wheel_folders():
        for file in sorted(folder.glob("portaudio-binaries/libportaudio*")):
            if _is_for_this_machine(file.name):
                return str(file)
    raise DeviceError(INSTALL_ADVICE)


def _wheel_folders() -> list[Path]:
    """Return the folders of PortAudio in the wheel of sounddevice, on systems where it brings one."""
    spec = PathFinder.find_spec("_sounddevice_data")
    folders = [] if spec is None else spec.submodule_search_locations or []
    return [Path(path) for path in folders]


def _is_for_this_machine(name: str) -> bool:
    if sys.platform == "darwin":
        return name == "libportaudio.dylib"
    arm = "arm" in os.environ.get("PROCESSOR_ARCHITECTURE", "").lower()
    kind = "arm64" if arm else f"{8 * ctypes.sizeof(c_void_p)}bit"
    return sys.platform == "win32" and name == f"libportaudio{kind}.dll"


class _LibraryInfo(ctypes.Structure):
    """Dl_info of ``dladdr``."""

    _fields_ = (("file", c_char_p), ("base", c_void_p), ("symbol", c_char_p), ("address", c_void_p))


def _file_of(dll: ctypes.CDLL) -> Path:
    """Return the file that a library was loaded from."""
    if sys.platform == "win32":
        name = ctypes.create_unicode_buffer(1 << 15)
        ctypes.windll.kernel32.GetModuleFileNameW(c_void_p(dll._handle), name, len(name))
        return Path(name.value)
    info, find = _LibraryInfo(), ctypes.CDLL(None).dladdr
    find.argtypes = (c_void_p, POINTER(_LibraryInfo))
    if not find(ctypes.cast(dll.Pa_Initialize, c_void_p), byref(info)):
        raise OSError("the linker has no file for it")
    return Path(os.fsdecode(info.file))


def _copy(source: Path) -> str:
    """Return a name under which the linker loads the same library again.

    Raises OSError: it cannot be read or copied
    """
    data = source.read_bytes()
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create(source.name, os.MFD_CLOEXEC)
        # the descriptor stays open: its number is the library's name
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(data)
        return f"/proc/self/fd/{descriptor}"
    descriptor, name = tempfile.mkstemp(suffix=source.suffix)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    return name
