"""Whether content is NNEF: a folder with ``graph.nnef``, or an archive that begins with the files of one."""

from pathlib import Path

GRAPH, TENSOR = "graph.nnef", ".dat"
GZIP = b"\x1f\x8b"
MAGIC = slice(257, 262)
"""The offset of a tar's magic number."""
UNPACKED_BYTES = 1 << 14
"""The bytes of an archive that are unpacked to recognise it."""


def holds_graph(path: Path | None, head: bytes) -> bool:
    """Return whether it is a graph: by its first bytes, or by the name of a file in a folder."""
    if path is not None and not head:
        return (path / GRAPH).is_file()
    if head[:2] == GZIP:
        import zlib

        try:
            head = zlib.decompressobj(31).decompress(head, UNPACKED_BYTES)
        except zlib.error:
            return False
    return head[MAGIC] == b"ustar" and (
        GRAPH.encode() in head or head[:100].rstrip(b"\0").endswith(TENSOR.encode())
    )
