"""Plug-in hosts in Python, through the C interfaces of LADSPA and CLAP."""

import ctypes
import itertools
from collections.abc import Callable
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_bool,
    c_char,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_uint16,
    c_uint32,
    c_uint64,
    c_ulong,
    c_void_p,
)
from ctypes import c_size_t as address
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

Sound = NDArray[np.float32]
FLOATS = POINTER(c_float)


def channel_arrays(block: Sound, outputs: int) -> list[Sound]:
    """Copies of the channels of a block, and arrays for outputs beyond them."""
    inputs = list(np.array(block.reshape(len(block), -1).T, np.float32, order="C"))
    return inputs + [np.full(len(block), np.nan, np.float32) for _ in range(outputs - len(inputs))]


def joined_channels(channels: list[Sound]) -> Sound:
    """Channels as [frames, channels], or [frames] if there is one."""
    return channels[0] if len(channels) == 1 else np.stack(channels, axis=1)


class LadspaDescriptor(Structure):
    """``LADSPA_Descriptor``."""

    _fields_ = (
        ("id", c_ulong),
        ("label", c_char_p),
        ("properties", c_int),
        ("name", c_char_p),
        ("maker", c_char_p),
        ("copyright", c_char_p),
        ("ports", c_ulong),
        ("kinds", POINTER(c_int)),
        ("names", POINTER(c_char_p)),
        ("ranges", c_void_p),
        ("data", c_void_p),
        ("instantiate", CFUNCTYPE(c_void_p, c_void_p, c_ulong)),
        ("connect_port", CFUNCTYPE(None, c_void_p, c_ulong, c_void_p)),
        ("activate", CFUNCTYPE(None, c_void_p)),
        ("run", CFUNCTYPE(None, c_void_p, c_ulong)),
        ("run_adding", c_void_p),
        ("set_gain", c_void_p),
        ("deactivate", c_void_p),
        ("cleanup", CFUNCTYPE(None, c_void_p)),
    )


class Ladspa:
    """A running LADSPA plug-in: its ports are the input channels, the output channels, bypass, latency."""

    def __init__(self, path: Path, rate_hz: int) -> None:
        self._code = ctypes.CDLL(str(path))
        self._code.ladspa_descriptor.restype = POINTER(LadspaDescriptor)
        assert not self._code.ladspa_descriptor(1)
        self.about: Any = self._code.ladspa_descriptor(0).contents
        self.names = [self.about.names[number].decode() for number in range(self.about.ports)]
        kinds = [self.about.kinds[number] for number in range(self.about.ports)]
        assert kinds == sorted(kinds, key=[9, 10, 5, 6].index)
        self._inputs, self._outputs = kinds.count(9), kinds.count(10)
        self._handle = self.about.instantiate(ctypes.addressof(self.about), rate_hz)
        self.accepts = bool(self._handle)
        self._bypass, self._latency = np.zeros(1, np.float32), np.full(1, -1, np.float32)
        if self.accepts:
            self._connect(self.about.ports - 2, self._bypass)
            self._connect(self.about.ports - 1, self._latency)
            self.reset()

    @property
    def delay(self) -> int:
        """The latency that it reports after a run."""
        return int(self._latency[0])

    def reset(self) -> None:
        """Begin a new stream."""
        self.about.activate(self._handle)

    def run(self, block: Sound, bypass: bool = False, turned: bool = False) -> Sound:
        """Return the output of a block, both [frames] or [frames, channels], computed in place.

        turned  output channels are written to the arrays of the input channels in reverse order
        """
        channels = channel_arrays(block, self._outputs)
        targets = channels[::-1] if turned else channels
        self._bypass[0] = float(bypass)
        for number in range(self._inputs):
            self._connect(number, channels[number])
        for number in range(self._outputs):
            self._connect(self._inputs + number, targets[number])
        self.about.run(self._handle, len(block))
        return joined_channels(targets[: self._outputs])

    def close(self) -> None:
        """Free the plug-in."""
        self.about.cleanup(self._handle)

    def _connect(self, port: int, data: Sound) -> None:
        self.about.connect_port(self._handle, port, data.ctypes.data)


class ClapEvent(Structure):
    """``clap_event_param_value``."""

    _fields_ = (
        ("size", c_uint32),
        ("time", c_uint32),
        ("space", c_uint16),
        ("type", c_uint16),
        ("flags", c_uint32),
        ("parameter", c_uint32),
        ("cookie", c_void_p),
        ("note", c_int32),
        ("port", ctypes.c_int16),
        ("channel", ctypes.c_int16),
        ("key", ctypes.c_int16),
        ("value", c_double),
    )


class ClapEvents(Structure):
    """``clap_input_events``."""

    _fields_ = (
        ("context", c_void_p),
        ("size", CFUNCTYPE(c_uint32, c_void_p)),
        ("get", CFUNCTYPE(c_void_p, c_void_p, c_uint32)),
    )


class ClapBuffer(Structure):
    """``clap_audio_buffer``."""

    _fields_ = (
        ("data32", POINTER(c_void_p)),
        ("data64", c_void_p),
        ("channels", c_uint32),
        ("latency", c_uint32),
        ("constant_mask", c_uint64),
    )


def clap_buffer(channels: list[Sound]) -> ClapBuffer:
    """The buffer of a port; the arrays are kept by the caller."""
    addresses = (c_void_p * len(channels))(*(channel.ctypes.data for channel in channels))
    return ClapBuffer(ctypes.cast(addresses, POINTER(c_void_p)), None, len(channels), 0, 0)


class ClapBlock(Structure):
    """``clap_process``."""

    _fields_ = (
        ("steady_time", c_int64),
        ("frames", c_uint32),
        ("transport", c_void_p),
        ("inputs", POINTER(ClapBuffer)),
        ("outputs", POINTER(ClapBuffer)),
        ("input_count", c_uint32),
        ("output_count", c_uint32),
        ("events_in", POINTER(ClapEvents)),
        ("events_out", c_void_p),
    )


class ClapPlugin(Structure):
    """``clap_plugin``."""

    _fields_ = (
        ("about", c_void_p),
        ("data", c_void_p),
        ("init", CFUNCTYPE(c_bool, c_void_p)),
        ("destroy", CFUNCTYPE(None, c_void_p)),
        ("activate", CFUNCTYPE(c_bool, c_void_p, c_double, c_uint32, c_uint32)),
        ("deactivate", CFUNCTYPE(None, c_void_p)),
        ("start", CFUNCTYPE(c_bool, c_void_p)),
        ("stop", CFUNCTYPE(None, c_void_p)),
        ("reset", CFUNCTYPE(None, c_void_p)),
        ("process", CFUNCTYPE(c_int32, c_void_p, POINTER(ClapBlock))),
        ("extension", CFUNCTYPE(c_void_p, c_void_p, c_char_p)),
        ("on_main_thread", c_void_p),
    )


class ClapFactory(Structure):
    """``clap_plugin_factory``."""

    _fields_ = (
        ("count", CFUNCTYPE(c_uint32, c_void_p)),
        ("describe", CFUNCTYPE(POINTER(c_uint32 * 3), c_void_p, c_uint32)),
        ("create", CFUNCTYPE(POINTER(ClapPlugin), c_void_p, c_void_p, c_char_p)),
    )


class ClapEntry(Structure):
    """``clap_plugin_entry``."""

    _fields_ = (
        ("version", c_uint32 * 3),
        ("init", CFUNCTYPE(c_bool, c_char_p)),
        ("deinit", CFUNCTYPE(None)),
        ("factory", CFUNCTYPE(POINTER(ClapFactory), c_char_p)),
    )


class ClapPort(Structure):
    """``clap_audio_port_info``."""

    _fields_ = (
        ("id", c_uint32),
        ("name", c_char * 256),
        ("flags", c_uint32),
        ("channels", c_uint32),
        ("kind", c_char_p),
        ("in_place_pair", c_uint32),
    )


class Clap:
    """A running CLAP plug-in."""

    def __init__(self, path: Path, rate_hz: int, plugin_id: str) -> None:
        self._code = ctypes.CDLL(str(path))
        entry: Any = ClapEntry.in_dll(self._code, "clap_entry")
        assert entry.init(str(path).encode())
        assert not entry.factory(b"something else")
        factory = entry.factory(b"clap.plugin-factory")
        assert factory.contents.count(factory) == 1
        assert not factory.contents.create(factory, None, b"another one")
        self._plugin = factory.contents.create(factory, None, plugin_id.encode())
        self._of: Any = self._plugin.contents
        assert self._of.init(self._plugin)
        self.accepts = self._of.activate(self._plugin, float(rate_hz), 1, 4096)
        if self.accepts:
            assert self._of.start(self._plugin)

    def port(self, is_input: bool) -> ClapPort:
        """The only input port, or the only output port."""
        (port,) = self.ports(is_input)
        return port

    def ports(self, is_input: bool) -> list[ClapPort]:
        """All input ports or output ports."""
        functions = self._extension("clap.audio-ports", 2)
        count = CFUNCTYPE(c_uint32, c_void_p, c_bool)(functions[0])(self._plugin, is_input)
        get = CFUNCTYPE(c_bool, c_void_p, c_uint32, c_bool, POINTER(ClapPort))(functions[1])
        ports = [ClapPort() for _ in range(count)]
        for number, port in enumerate(ports):
            assert get(self._plugin, number, is_input, ctypes.byref(port))
        assert not get(self._plugin, count, is_input, ctypes.byref(ClapPort()))
        return ports

    @property
    def delay(self) -> int:
        """The latency that it reports."""
        return CFUNCTYPE(c_uint32, c_void_p)(self._extension("clap.latency", 1)[0])(self._plugin)

    @property
    def bypass(self) -> float:
        """The value of its only parameter."""
        value = c_double()
        get = CFUNCTYPE(c_bool, c_void_p, c_uint32, POINTER(c_double))(self._extension("clap.params", 3)[2])
        assert get(self._plugin, 0, ctypes.byref(value))
        return value.value

    def reset(self) -> None:
        """Begin a new stream."""
        self._of.reset(self._plugin)

    def run(self, block: Sound, bypass: bool | None = None, turned: bool = False) -> Sound:
        """Return the output of a block, both [frames] or [frames, channels], computed in place.

        bypass  an event sets it if it is given
        turned  output channels are written to the arrays of the input channels in reverse order
        """
        sizes = [port.channels for port in self.ports(True)]
        (outputs,) = (port.channels for port in self.ports(False))
        channels = channel_arrays(block, outputs)
        targets = (channels[::-1] if turned else channels)[:outputs]
        input_channels = iter(channels)
        groups = [list(itertools.islice(input_channels, size)) for size in sizes]
        inputs = (ClapBuffer * len(groups))(*map(clap_buffer, groups))
        output = clap_buffer(targets)
        event = ClapEvent(ctypes.sizeof(ClapEvent), 0, 0, 5, 0, 0, None, -1, -1, -1, -1, float(bool(bypass)))
        events: Any = ClapEvents()

        def count(_: int) -> int:
            return int(bypass is not None)

        def get(_: int, index: int) -> int:
            assert index == 0
            return ctypes.addressof(event)

        events.size, events.get = type(events.size)(count), type(events.get)(get)
        audio_block = ClapBlock(
            0,
            len(block),
            None,
            inputs,
            ctypes.pointer(output),
            len(groups),
            1,
            ctypes.pointer(events),
            None,
        )
        assert self._of.process(self._plugin, ctypes.byref(audio_block)) == 1
        return joined_channels(targets)

    def close(self) -> None:
        """Free the plug-in."""
        self._of.stop(self._plugin)
        self._of.deactivate(self._plugin)
        self._of.destroy(self._plugin)

    def _extension(self, name: str, functions: int) -> Any:
        assert not self._of.extension(self._plugin, b"another.extension")
        functions_of_host = self._of.extension(self._plugin, name.encode())
        return ctypes.cast(functions_of_host, POINTER(address * functions)).contents


def begin_ladspa(folder: Path, rate_hz: int) -> Ladspa:
    return Ladspa(folder / "ladspa" / "small.so", rate_hz)


def begin_clap(folder: Path, rate_hz: int) -> Clap:
    return Clap(folder / "clap" / "small.clap", rate_hz, "urn:pulse:small")


Begin = Callable[[Path, int], Ladspa | Clap]
both_hosts = pytest.mark.parametrize("begin", [begin_ladspa, begin_clap])


def blocks(sound: Sound, seed: int = 1) -> list[Sound]:
    """The signal in blocks of any size, one of them longer than a plug-in's largest block."""
    rng, ends = np.random.default_rng(seed), [1000]
    while ends[-1] < len(sound):
        ends.append(ends[-1] + int(rng.integers(1, 300)))
    return np.split(sound, ends[:-1])
