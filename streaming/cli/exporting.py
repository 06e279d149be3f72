"""Writing a pulsed model to a file of its own, and the proof that it works there."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streaming.cli.console import print_error, size
from streaming.replacing import part_of, publish

if TYPE_CHECKING:
    from pulse.onnx.write.check import Checked
    from pulse.pulsify.model import PulsedModel
    from streaming.cli.model import Opened


@dataclass(frozen=True)
class Exported:
    """A file that was written.

    states   inputs that carry state
    checked  what was proved; None where the user did not want it
    """

    path: Path
    opset: int
    nodes: int
    states: int
    nbytes: int
    checked: "Checked | None"

    def pairs(self) -> list[tuple[str, str]]:
        """In words."""
        told = (
            f"{self.path}: opset {self.opset}, {self.nodes} nodes, {self.states} states, {size(self.nbytes)}"
        )
        if self.checked is None:
            return [("written", told), ("proof", "none (--no-check)")]
        lengths = ", ".join(map(str, self.checked.lengths))
        proof = f"{self.checked.runtime} equals offline over streams of {lengths} frames"
        proof += f", {self.checked.error:.3g} apart at most"
        return [("written", told), ("proof", proof)]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        checked = self.checked
        return {
            "path": str(self.path),
            "opset": self.opset,
            "nodes": self.nodes,
            "states": self.states,
            "bytes": self.nbytes,
            "check": None
            if checked is None
            else {
                "runtime": checked.runtime,
                "lengths": list(checked.lengths),
                "skipped": list(checked.skipped),
                "error": checked.error,
            },
        }


def export(opened: "Opened", pulsed: "PulsedModel", path: Path, opset: int, checks: bool) -> Exported:
    """Write the file, check it, and only then give it its name.

    Raises WriteError; InputError: a name that does not end in .onnx, a folder that refuses; DivergenceError where the
    file does not give what the offline model gives: then there is no file
    """
    from pulse.errors import InputError
    from pulse.onnx.write.check import check
    from pulse.onnx.write.model import to_onnx

    if path.suffix.lower() != ".onnx":
        raise InputError(f"{path}: a model is written as .onnx, not {path.suffix or 'this'}")
    part = part_of(path)
    known = opened.rate_hz is not None and opened.rate_from != "default"
    try:
        proto = to_onnx(pulsed, opset, {"sample_rate": str(opened.rate_hz)} if known else None)
        try:
            part.write_bytes(proto.SerializeToString())
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror})") from error
        checked = check(proto, pulsed, opened.typed) if checks else None
        nbytes = part.stat().st_size
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    publish(part, path)
    states = len(proto.graph.output) - len(pulsed.outputs)
    return Exported(path, opset, len(proto.graph.node), states, nbytes, checked)


def export_or_exit(
    opened: "Opened", pulsed: "PulsedModel", path: Path | None, opset: int, checks: bool
) -> Exported | None:
    """``export`` where a path is given; where the check fails the command ends."""
    import typer

    from pulse.errors import DivergenceError
    from streaming.cli.console import CHECK_FAILED

    if path is None:
        return None
    try:
        return export(opened, pulsed, path, opset, checks)
    except DivergenceError as error:
        print_error(f"{error}; {path} is not written")
        raise typer.Exit(CHECK_FAILED) from error
