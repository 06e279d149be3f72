"""Other libraries as references of front ends; a test skips if its library is missing."""

import warnings
from importlib import import_module
from typing import Any

import pytest


def library(name: str, package: str) -> Any:
    """A library; its own warnings are not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return import_module(name)
        except (ImportError, OSError) as error:
            pytest.skip(f"{package} is not installed, or does not run here: {error}")


def torch() -> Any:
    return library("torch", "PyTorch")


def torchaudio() -> Any:
    return library("torchaudio", "torchaudio")


def librosa() -> Any:
    """librosa, whose parts are imported when they are first asked for."""
    library("librosa.feature", "librosa")
    return library("librosa", "librosa")


def kaldi_native_fbank() -> Any:
    return library("kaldi_native_fbank", "kaldi-native-fbank")
