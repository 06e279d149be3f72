"""The registry of file formats; ``pulse.formats`` has the formats."""

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulse.chunks.chunking import DETECT_ALL, Chunking
from pulse.errors import LoadError
from pulse.loading.onnx_files import read_onnx
from pulse.metadata import TITLE, is_exported
from pulse.models import Model, TypedModel
from pulse.program.file.stored_program import StoredProgram
from pulse.support.printable import is_title
from pulse.support.record import record
from pulse.support.wording import spell

if TYPE_CHECKING:
    from onnx import ModelProto

    from pulse.onnx.read.file import ModelSource

RECOGNITION_BYTES = 4096
"""How many first bytes identify a format."""


@record
class ReadOptions:
    """The options of reading a file; see ``pulse.load``."""

    inputs: Mapping[str, str] | None = None
    constants: Mapping[str, Any] | None = None
    chunking: Chunking = DETECT_ALL
    ignore_value_info: bool = False
    budget: Mapping[str, float] | None = None
    signature: str | None = None

    def of_reader(self, *others: str) -> dict[str, Any]:
        """Return, by name, the options that every reader of nodes takes, and others."""
        return {name: getattr(self, name) for name in ("inputs", "constants", "budget", *others)}


@record
class Content:
    """The source of a model: a path, bytes, or an ``onnx.ModelProto``.

    source  a path, the bytes of a file, or an ``onnx.ModelProto``
    head    its first bytes; empty for a folder, a ModelProto, and a file that cannot be read
    """

    source: "Path | bytes | ModelProto"
    head: bytes = b""

    @classmethod
    def of(cls, source: "ModelSource") -> "Content":
        """Read the head of a source; an unreadable source is left to its reader, which reports why."""
        if isinstance(source, bytes):
            return cls(source, source[:RECOGNITION_BYTES])
        if not isinstance(source, str | PathLike):
            return cls(source)
        path = Path(source)
        try:
            if not path.is_file():
                return cls(path)
            with path.open("rb") as file:
                return cls(path, file.read(RECOGNITION_BYTES))
        except (OSError, ValueError):
            return cls(path)

    @property
    def path(self) -> Path | None:
        """The path of the source, or None if it is in memory."""
        return self.source if isinstance(self.source, Path) else None


@record
class Format:
    """A format of models.

    name        its usual name
    recognises  whether content is of this format, by its bytes; if these do not decide, by its name
    read        the model; raises PulseError
    """

    name: str
    recognises: Callable[[Content], bool]
    read: Callable[[Content, ReadOptions], Model | TypedModel | StoredProgram]


FORMATS: list[Format] = []
"""The formats in the order in which they are tried; ``pulse.formats`` adds them."""


def find_format(content: Content) -> Format:
    """Return the first format that recognises the content; ONNX if none does, because protobuf has no magic number."""
    return next((format for format in FORMATS if format.recognises(content)), ONNX)


def _read_onnx(content: Content, options: ReadOptions) -> Model:
    if options.signature is not None:
        raise LoadError(
            f"{content.path or 'the model'}: an ONNX file has no signatures; omit {spell('signature')}"
        )
    model = read_onnx(content.source, **options.of_reader("ignore_value_info"))
    title = model.metadata.get(TITLE, "")
    if is_exported(model.metadata) and is_title(title):
        model.title = title
    return model


ONNX = Format("ONNX", lambda _: True, _read_onnx)
