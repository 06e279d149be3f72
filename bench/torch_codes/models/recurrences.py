"""Recurrences that their authors compute as scans or loops over frames."""

from importlib import import_module
from typing import Any

from bench.torch_codes.published_model import Subject, code


def _torch() -> Any:
    return import_module("torch")


@code("minGRU", "minGRU-pytorch")
def min_gru() -> Subject:
    model = import_module("minGRU_pytorch").minGRU(16, expansion_factor=1.5)
    return Subject(model, _torch().randn(1, 40, 16), 100)


@code("linear recurrent unit", "lru-pytorch")
def linear_recurrent_unit() -> Subject:
    return Subject(import_module("LRU_pytorch").LRU(4, 4, 8), _torch().randn(1, 20, 4), 100)


@code("Mamba, scan in sequence", "mambapy")
def mamba() -> Subject:
    kinds = import_module("mambapy.mamba")
    model = kinds.Mamba(kinds.MambaConfig(d_model=16, n_layers=1, pscan=False))
    return Subject(model, _torch().randn(1, 40, 16), 100)


@code("Mamba, parallel scan", "mambapy")
def mamba_parallel() -> Subject:
    kinds = import_module("mambapy.mamba")
    return Subject(kinds.Mamba(kinds.MambaConfig(d_model=16, n_layers=1)), _torch().randn(1, 40, 16), 100)
