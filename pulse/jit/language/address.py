"""Convert addresses as ints to typed pointers, and back; only in compiled code."""

from pulse.jit.language.declared import refuse
from pulse.jit.language.structs import Struct
from pulse.jit.rows.pointer import Pointer


def words_at(address: int) -> Pointer:
    """Return a pointer to the int64 at an address."""
    refuse()


def floats_at(address: int) -> Pointer:
    """Return a pointer to the float32 at an address."""
    refuse()


def doubles_at(address: int) -> Pointer:
    """Return a pointer to the float64 at an address."""
    refuse()


def bytes_at(address: int) -> Pointer:
    """Return a pointer to the uint8 at an address."""
    refuse()


def address_of(pointer: Pointer | Struct) -> int:
    """Return the address of a pointer's target or of a struct."""
    refuse()
