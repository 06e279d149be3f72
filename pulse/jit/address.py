"""Addresses as ints made into typed pointers, and back; only in compiled code."""

from pulse.jit.declared import refuse
from pulse.jit.pointer import Pointer
from pulse.jit.structs import Struct


def words_at(address: int) -> Pointer:
    """The int64 at an address."""
    refuse()


def floats_at(address: int) -> Pointer:
    """The float32 at an address."""
    refuse()


def doubles_at(address: int) -> Pointer:
    """The float64 at an address."""
    refuse()


def bytes_at(address: int) -> Pointer:
    """The uint8 at an address."""
    refuse()


def address_of(pointer: Pointer | Struct) -> int:
    """The address that a pointer holds, or that of a struct."""
    refuse()
