# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false
"""Ordered loads and stores of control block fields that Python and another thread share, on any processor."""

from numba.core import types

from pulse.jit.address import words_at
from pulse.jit.entries import entry
from streaming.native import primitives


@entry("pipeline.load_word", 2, types.int64, brief=True)
def load(address, place):
    """Load a field with acquire ordering: all that its writer wrote before is visible."""
    return primitives.load(words_at(address), place)


@entry("pipeline.store_word", 3, brief=True)
def store(address, place, value):
    """Store a field with release ordering: all accesses before it are complete for whoever loads it."""
    primitives.store(words_at(address), place, value)
