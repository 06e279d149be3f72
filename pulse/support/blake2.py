"""The checksum BLAKE2b, as in ``hashlib``, for modules that every start imports.

``hashlib`` links OpenSSL when it is imported, which takes longer than loading a program file of 400 kB.
"""

try:
    from _blake2 import blake2b as blake2b
except ImportError:  # an interpreter without this module
    from hashlib import blake2b as blake2b
