# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false
"""Words that tell Python what another thread has written, and that thread what Python has read, on any processor."""

from pulse.jit import atomics
from pulse.jit.address import words_at
from pulse.jit.entries import entry


@entry("pipeline.load_word", 2, gives_int=True, brief=True)
def load(address, place):
    """A word; what its writer had written before it is there."""
    return atomics.load(words_at(address), place)


@entry("pipeline.store_word", 3, brief=True)
def store(address, place, value):
    """Set a word; whoever loads it finds that all that was read before has been read."""
    atomics.store(words_at(address), place, value)
