"""The files of a model, from a folder or an archive; only names inside it are opened."""

import gzip
import io
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from pulse.errors import LoadError, file_errors
from pulse.facts import Array
from pulse.nnef.recognition import GRAPH, GZIP, TENSOR
from pulse.nnef.tensors import load_tensor
from pulse.support.printable import printable
from pulse.support.record import record
from pulse.support.wording import count_of

QUANTISATION = "graph.quant"
MAX_TEXT_BYTES = 1 << 26
"""A longer graph is refused: weights belong into separate files."""
MAX_UNPACKED_BYTES = 1 << 28
MAX_UNPACKED_RATIO = 64
"""An archive that unpacks to more bytes, and to more than this many times its own size, is refused."""


@record(eq=False)
class NnefFiles:
    """The contents of files by name, or the folder that has them."""

    title: str
    folder: Path | None
    contents: Mapping[str, bytes]

    @classmethod
    def of(cls, source: "Path | bytes") -> "NnefFiles":
        """Return the files of a folder, or of an archive's path or bytes. Raises LoadError: they cannot be read."""
        if isinstance(source, bytes):
            return cls("the archive", None, _unpack(source, "the archive"))
        title = printable(str(source))
        if source.is_dir():
            return cls(title, source, {})
        with file_errors(title, "read", LoadError):
            return cls(title, None, _unpack(source.read_bytes(), title))

    def text(self) -> str:
        """Return ``graph.nnef``. Raises LoadError: it is missing, too long, or no text; or there is ``graph.quant``."""
        if self._content(QUANTISATION) is not None:
            raise LoadError(
                f"{self.title}: quantisation files are not supported, but it has {QUANTISATION}; "
                "export the model with floats, or as .tflite or ONNX with QDQ"
            )
        content = self._content(GRAPH)
        if content is None:
            raise LoadError(
                f"{self.title}: there is no {GRAPH} in it; pack the files of the model, not their folder"
            )
        if len(content) > MAX_TEXT_BYTES:
            raise LoadError(
                f"{self.title}: {GRAPH} has {count_of(len(content), 'byte')}, over {MAX_TEXT_BYTES}; "
                f"store weights as {TENSOR} files"
            )
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise LoadError(
                f"{self.title}: {GRAPH} is not UTF-8 text ({error.reason} at byte {error.start})"
            ) from error

    def tensor(self, label: str) -> Array:
        """Return a stored tensor. Raises LoadError: it is missing or damaged."""
        name = f"{label}{TENSOR}"
        shown = f"{self.title}: {printable(name)}"
        parts = PurePosixPath(label).parts
        if not label or label.endswith("/") or "\0" in label or any(part in ("..", "/") for part in parts):
            raise LoadError(f"{shown}: is not a name inside the model; rename the variable")
        content = self._content(str(PurePosixPath(name)))
        if content is None:
            raise LoadError(f"{shown}: is missing; copy all files of the model")
        return load_tensor(content, shown)

    def _content(self, name: str) -> bytes | None:
        if self.folder is None:
            return self.contents.get(name)
        path = self.folder / name
        try:
            if not path.is_file():
                return None
            if not path.resolve().is_relative_to(self.folder.resolve()):
                raise LoadError(
                    f"{self.title}: {printable(name)} leads out of the folder; copy the file into it"
                )
            return path.read_bytes()
        except (OSError, ValueError) as error:
            raise LoadError(f"{self.title}: {printable(name)} cannot be read ({error})") from error


def _unpack(content: bytes, title: str) -> dict[str, bytes]:
    limit = max(MAX_UNPACKED_BYTES, MAX_UNPACKED_RATIO * len(content))
    too_much = LoadError(
        f"{title}: it unpacks to more than {count_of(limit, 'byte')}; unpack it, and give the folder"
    )
    try:
        if content[:2] == GZIP:
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
                content = stream.read(limit + 1)
        if len(content) > limit:
            raise too_much
        contents: dict[str, bytes] = {}
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
            for entry in archive:
                if not entry.isreg():
                    continue
                if sum(map(len, contents.values())) + entry.size > limit:
                    raise too_much
                stream = archive.extractfile(entry)
                assert stream is not None
                contents[str(PurePosixPath(entry.name))] = stream.read()
        return contents
    except (tarfile.TarError, OSError, EOFError, zlib.error, ValueError, OverflowError) as error:
        raise LoadError(
            f"{title}: the archive is damaged ({printable(str(error))}); copy it again"
        ) from error
