"""The path of sound without Python: no GIL, no allocation, no lock, no exception.

Python allocates all memory before anything runs. The functions here share structs (``pulse.jit.language.structs``):
settings that never change, counters with one writer each, and addresses of buffers.
"""
