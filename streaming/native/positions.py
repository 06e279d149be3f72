# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false
"""Ordered loads and stores of control block fields that Python and another thread share, on any processor."""

from pulse.jit import atomics
from pulse.jit.address import words_at
from pulse.jit.entries import entry


@entry("pipeline.load_word", 2, gives_int=True, brief=True)
def load(address, place):
    """Load a field with acquire ordering: all that its writer wrote before is visible."""
    return atomics.load(words_at(address), place)


@entry("pipeline.store_word", 3, brief=True)
def store(address, place, value):
    """Store a field with release ordering: all accesses before it are complete for whoever loads it."""
    atomics.store(words_at(address), place, value)
