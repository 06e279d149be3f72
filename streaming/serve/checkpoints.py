"""Checkpoints: files of stream states, from which any server with the same model can continue."""

import errno
import json
import logging
import os
import re
import secrets
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pulse.errors import InputError
from pulse.support.not_copyable import NotCopyable
from pulse.support.record import record
from streaming.protocol.binary_messages import HEADER
from streaming.protocol.errors import ProtocolError

MAGIC = b"pulse/checkpoint/3\n"
CHECKPOINT_NAME = re.compile(r"[0-9a-f]{32}")
LENGTH = struct.Struct("<I")
MAX_HEAD_LENGTH = 1 << 16
"""A checkpoint with a longer header is damaged."""
SUFFIX = ".checkpoint"
CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES)
"""Errors of file systems that cannot sync a folder; the files are synced anyway."""
logger = logging.getLogger("pulse.serve")


@record
class Checkpoint:
    """The state of a stream between two pulses.

    model     the model's name in the server
    epoch     the number of resets so far
    received  frames received for each input so far
    sent      frames sent for each output so far
    snapshot  the snapshot of the session
    sound     the snapshot of the resamplers; empty if there are none
    outputs   the messages before it that the client may not have received
    """

    model: str
    epoch: int
    received: tuple[int, ...]
    sent: tuple[int, ...]
    snapshot: bytes
    sound: bytes = b""
    outputs: tuple[bytes, ...] = ()

    def as_bytes(self) -> bytes:
        """Encode the checkpoint as a file."""
        fields = {"model": self.model, "epoch": self.epoch, "received": self.received, "sent": self.sent}
        outputs = b"".join(LENGTH.pack(len(message)) + message for message in self.outputs)
        head = json.dumps({**fields, "sound": len(self.sound), "outputs": len(outputs)}).encode()
        return MAGIC + LENGTH.pack(len(head)) + head + self.sound + outputs + self.snapshot

    @classmethod
    def of_bytes(cls, data: bytes) -> "Checkpoint":
        """Decode a file. Raises InputError: it is not a checkpoint."""
        offset = len(MAGIC) + LENGTH.size
        try:
            if not data.startswith(MAGIC):
                raise ValueError("it does not begin with the magic bytes")
            (size,) = LENGTH.unpack_from(data, len(MAGIC))
            if size > MAX_HEAD_LENGTH:
                raise ValueError("the header is too long")
            head: dict[str, Any] = json.loads(data[offset : offset + size])
            received, sent = tuple(map(int, head["received"])), tuple(map(int, head["sent"]))
            epoch, lengths = int(head["epoch"]), (int(head["sound"]), int(head["outputs"]))
            begin = offset + size + sum(lengths)
            if min(epoch, *received, *sent, *lengths) < 0 or begin > len(data):
                raise ValueError("a number is out of range")
            offset += size
            sound = data[offset : offset + lengths[0]]
            outputs = tuple(_messages(data[offset + lengths[0] : begin]))
            return cls(str(head["model"]), epoch, received, sent, data[begin:], sound, outputs)
        except (ValueError, KeyError, TypeError, struct.error, RecursionError) as error:
            raise InputError(f"not a checkpoint of a stream: {error}") from None


def _messages(data: bytes) -> Iterator[bytes]:
    """Yield consecutive messages, each preceded by its length. Raises ValueError, struct.error: the data is damaged."""
    offset = 0
    while offset < len(data):
        (size,) = LENGTH.unpack_from(data, offset)
        offset += LENGTH.size + size
        if size < HEADER.size or offset > len(data):
            raise ValueError("the length of a message is out of range")
        yield data[offset - size : offset]


class CheckpointFolder(NotCopyable, reason="give each server the path of the folder"):
    """A folder of checkpoints, which several servers may share. Names are secrets: they grant access to the stream.

    keep_s   seconds that a checkpoint is kept if it is not replaced
    Raises   InputError: no such folder
    """

    def __init__(self, path: Path, keep_s: float) -> None:
        if not path.is_dir():
            raise InputError(
                f"checkpoints: {path} is not a folder; create it first, with access for this user only"
            )
        self._path, self.keep_s = path, keep_s

    def new_name(self) -> str:
        """Create a name that cannot be guessed."""
        return secrets.token_hex(16)

    def save(self, name: str, generation: int, checkpoint: Checkpoint) -> bool:
        """Replace the checkpoint of a stream atomically, and sync it to the disk. Returns False if a newer one exists.

        generation  how many times the stream has moved to another server: a late write of an older server does not
                    replace the checkpoint of a newer one
        Raises      OSError: it cannot be written; no incomplete file is left
        """
        path = self._path / f"{name}-{generation:06}{SUFFIX}"
        if any(newer.name > path.name for newer in self._files(name)):
            return False
        handle, part = tempfile.mkstemp(SUFFIX, f".{path.stem}-", self._path)  # only this user has access
        try:
            with open(handle, "wb") as file:
                file.write(checkpoint.as_bytes())
                file.flush()
                os.fsync(file.fileno())
            Path(part).replace(path)
            self._sync_folder()
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise
        for older in self._files(name):
            if older.name < path.name:
                older.unlink(missing_ok=True)
        return True

    def load(self, name: str) -> tuple[Checkpoint, int]:
        """Return the newest checkpoint of a stream, and its generation.

        Raises  ProtocolError: there is none, or it cannot be read, which is logged
        """
        files = self._files(name)
        try:
            path = files[-1]
            return Checkpoint.of_bytes(path.read_bytes()), int(path.stem.partition("-")[2])
        except (IndexError, FileNotFoundError):
            raise ProtocolError("resume", "no checkpoint has this name", "begin a new stream") from None
        except OSError as error:
            raise checkpoint_error("cannot be read", error.strerror or type(error).__name__) from None
        except (InputError, ValueError) as error:
            raise checkpoint_error("is damaged", str(error)) from None

    def remove(self, name: str) -> None:
        """Remove the checkpoints of a stream that has ended. Raises OSError: a file cannot be removed."""
        for path in self._files(name):
            path.unlink(missing_ok=True)

    def sweep(self) -> tuple[int, int]:
        """Remove expired checkpoints. Returns how many, and how many errors there were; the folder's own is logged."""
        oldest, count, failed = time.time() - self.keep_s, 0, 0
        try:
            paths = list(self._path.glob(f"*{SUFFIX}"))
        except OSError as error:
            logger.error("the folder of checkpoints cannot be read: %s", error.strerror or error)
            return 0, 1
        for path in paths:
            try:
                if path.stat().st_mtime < oldest:
                    path.unlink(missing_ok=True)
                    count += 1
            except FileNotFoundError:
                continue  # another server has removed it
            except OSError:
                failed += 1
        return count, failed

    def _sync_folder(self) -> None:
        """Sync the names of the files, if the system can."""
        if sys.platform == "win32":
            return
        try:
            folder = os.open(self._path, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            if error.errno not in CANNOT_SYNC:
                raise

    def _files(self, name: str) -> list[Path]:
        """Return the files of a stream, newest last."""
        if not CHECKPOINT_NAME.fullmatch(name):
            raise ProtocolError("resume", "no checkpoint has such a name", "begin a new stream")
        return sorted(self._path.glob(f"{name}-*{SUFFIX}"))


def checkpoint_error(state: str, reason: str) -> ProtocolError:
    """Log why a checkpoint cannot be used, without its name, which is a secret. Returns the error for the client."""
    logger.error("a checkpoint %s: %s", state, reason)
    return ProtocolError("resume", f"the checkpoint {state}", "begin a new stream")
