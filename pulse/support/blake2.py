"""The checksum BLAKE2b, as in ``hashlib``, for modules that open, compile or run a model.

``hashlib`` links OpenSSL when it is imported, which takes longer than loading a program file of 400 kB. Modules that
are imported only to compile kernels, to build a library or in a fleet take it from ``hashlib``.
"""

try:
    from _blake2 import blake2b as blake2b
except ImportError:  # an interpreter without this module
    from hashlib import blake2b as blake2b
