# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false
"""Ordered loads and stores of fields that Python and another thread share, on any processor."""

from pulse.jit.entries import entry
from pulse.jit.language import atomics
from pulse.jit.language.structs import Struct
from pulse.program.machine.packed import count_at


@entry("pipeline.load_word", 1, returns="int", keeps_gil=True)
def _load(address):
    return atomics.load(count_at(address), "count")


@entry("pipeline.store_word", 2, keeps_gil=True)
def _store(address, value):
    atomics.store(count_at(address), "count", value)


def load(fields: Struct, name: str) -> int:
    """Load a field with acquire ordering: all earlier writes of its writer are visible."""
    return _load.call(fields.address_of(name))


def store(fields: Struct, name: str, value: int) -> None:
    """Store a field with release ordering: all accesses before it are complete for the thread that loads it."""
    _store.call(fields.address_of(name), value)
