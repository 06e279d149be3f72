"""The node cases of ``onnx.backend.test``, from the installed package or a folder."""

import os
import pickle
import warnings
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.backend.test.loader import load_model_tests

from pulse.onnx.registry import DEFAULT_DOMAINS
from tests.sources import ROOT

DataSet: TypeAlias = tuple[Sequence[Any], Sequence[Any]]
EXPANDED = "_expanded"
"""The suffix in the names of cases that expand an operator's function body."""


@dataclass(frozen=True)
class NodeCase:
    """A model with inputs and the outputs that they must give, within its own tolerance."""

    name: str
    model: ModelProto
    data_sets: Sequence[DataSet]
    rtol: float = 1e-3
    atol: float = 1e-7

    @property
    def expanded(self) -> bool:
        """Whether it is a function body in place of an operator."""
        return EXPANDED in self.name

    @cached_property
    def operator(self) -> str:
        """Its one operator; empty where it has several."""
        (first, *others) = self.model.graph.node
        return "" if others or first.domain not in DEFAULT_DOMAINS else first.op_type

    @property
    def opset(self) -> int:
        """The version of the default domain."""
        versions = {entry.domain: entry.version for entry in self.model.opset_import}
        return versions.get("", versions.get("ai.onnx", 1))


@cache
def node_cases() -> tuple[NodeCase, ...]:
    """Every case of the installed onnx. Making them takes 5 seconds, so a file has them for other processes."""
    source = zlib.crc32(Path(__file__).read_bytes())
    stored = ROOT / "build" / f"node_cases_{onnx.__version__}_{np.__version__}_{source:08x}.pickle"
    if stored.exists():
        return pickle.loads(stored.read_bytes())
    cases = _make_cases()
    with suppress(OSError):  # a folder without write access
        stored.parent.mkdir(exist_ok=True)
        unfinished = stored.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(pickle.dumps(cases))
        unfinished.replace(stored)
    return cases


def _make_cases() -> tuple[NodeCase, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    return tuple(
        stored_case(Path(case.model_dir), case.rtol, case.atol)
        if case.model is None and case.model_dir
        else NodeCase(case.name, case.model or ModelProto(), case.data_sets or (), case.rtol, case.atol)
        for case in cases
    )


def stored_case(folder: Path, rtol: float = 1e-3, atol: float = 1e-7) -> NodeCase:
    """A case from its folder: a model and, for each data set, a file for each input and output."""
    model = onnx.load(folder / "model.onnx")
    data_sets = [
        (tensors_of(data, "input", model.graph.input), tensors_of(data, "output", model.graph.output))
        for data in sorted(folder.glob("test_data_set_*"))
    ]
    return NodeCase(folder.name, model, data_sets, rtol, atol)


def tensors_of(folder: Path, kind: str, declared: Sequence[onnx.ValueInfoProto]) -> list[Any]:
    """Tensors unchanged; the bytes of other types, which are skipped."""
    files = [folder / f"{kind}_{number}.pb" for number in range(len(declared))]
    return [
        TensorProto.FromString(file.read_bytes()) if value.type.HasField("tensor_type") else file.read_bytes()
        for file, value in zip(files, declared)
        if file.exists()
    ]


def as_array(value: Any) -> np.ndarray:
    """Return a tensor of a data set as an array."""
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)
