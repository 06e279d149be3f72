"""Recurrences that their authors compute as scans or loops over frames."""

from importlib import import_module

from bench.torch_codes.published_model import ModuleCase, import_torch, published_model


@published_model("minGRU", "minGRU-pytorch")
def min_gru() -> ModuleCase:
    model = import_module("minGRU_pytorch").minGRU(16, expansion_factor=1.5)
    return ModuleCase(model, import_torch().randn(1, 40, 16), 100)


@published_model("linear recurrent unit", "lru-pytorch")
def linear_recurrent_unit() -> ModuleCase:
    return ModuleCase(import_module("LRU_pytorch").LRU(4, 4, 8), import_torch().randn(1, 20, 4), 100)


@published_model("Mamba, scan in sequence", "mambapy")
def mamba() -> ModuleCase:
    package = import_module("mambapy.mamba")
    model = package.Mamba(package.MambaConfig(d_model=16, n_layers=1, pscan=False))
    return ModuleCase(model, import_torch().randn(1, 40, 16), 100)


@published_model("Mamba, parallel scan", "mambapy")
def mamba_parallel() -> ModuleCase:
    package = import_module("mambapy.mamba")
    return ModuleCase(
        package.Mamba(package.MambaConfig(d_model=16, n_layers=1)), import_torch().randn(1, 40, 16), 100
    )
