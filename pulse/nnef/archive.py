"""A model as files: ``graph.nnef`` and its tensors, in a folder or in one archive."""

import gzip
import io
import tarfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path, PurePosixPath

from pulse.errors import WriteError, file_errors
from pulse.facts import Array
from pulse.nnef.recognition import GRAPH, TENSOR
from pulse.nnef.syntax import Call, Document
from pulse.nnef.tensors import dump_tensor
from pulse.support.record import record

ARCHIVES = (".tgz", ".tar.gz", ".tar")


@record(eq=False)
class Archive:
    """A document and its tensors by label."""

    document: Document
    tensors: Mapping[str, Array]

    @property
    def assignments(self) -> int:
        """How many calls of operators there are, in the graph and in fragments."""
        parts = [self.document.body, *(fragment.body or () for fragment in self.document.fragments)]
        return sum(map(len, parts))

    @property
    def states(self) -> int:
        """The number of tensors that scans carry from run to run."""
        calls = [assignment.value for assignment in self.document.body if isinstance(assignment.value, Call)]
        scans = [dict(call.named) for call in calls if call.operator == "tract_core_scan"]
        states = [scan["state"] for scan in scans if not scan["reset_every_turn"]]
        return sum(len(state) for state in states if isinstance(state, list))

    def files(self) -> dict[str, bytes]:
        """Return file names and contents. Raises WriteError: a tensor that no file can hold."""
        contents = {GRAPH: self.document.text().encode()}
        return contents | {
            f"{label}{TENSOR}": dump_tensor(value, label) for label, value in self.tensors.items()
        }

    def save(self, path: str | PathLike[str]) -> None:
        """Write an archive if the name ends as one, else a folder. Raises WriteError: the file system refuses."""
        path = Path(path)
        with file_errors(path, "written", WriteError, "check the folder"):
            if path.name.lower().endswith(ARCHIVES):
                path.write_bytes(self.pack(compressed=not path.name.lower().endswith(".tar")))
                return
            path.mkdir()
            for name, content in self.files().items():
                (path / name).write_bytes(content)

    def pack(self, compressed: bool = True) -> bytes:
        """Pack all files into one archive; equal models have equal bytes."""
        memory = io.BytesIO()
        with tarfile.open(fileobj=memory, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for name, content in self.files().items():
                entry = tarfile.TarInfo(str(PurePosixPath(name)))
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        return gzip.compress(memory.getvalue(), mtime=0) if compressed else memory.getvalue()
