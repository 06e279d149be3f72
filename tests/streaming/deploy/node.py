"""Run WebAssembly modules in Node.js, with the JavaScript for browsers."""

import subprocess
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest

OPENED = """
import { readFileSync, writeFileSync } from "node:fs";
const [folder, given, made] = process.argv.slice(2);
const script = readFileSync(`${folder}/worklet.js`).toString("base64");
const { Model, Sound } = await import(`data:text/javascript;base64,${script}`);
const module = new WebAssembly.Module(readFileSync(`${folder}/module.wasm`));
const bytes = readFileSync(given), heard = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
"""
"""The beginning of every script."""


def require_tools() -> None:
    """Skip the test where a module can be neither linked nor run."""
    if find_spec("ziglang") is None:
        pytest.skip("ziglang is missing: pip install 'pulse-stream[build]'")
    if which("node") is None:
        pytest.skip("Node.js is missing")


def run_node(script: str, folder: Path, scratch: Path, content: bytes = b"") -> tuple[bytes, str]:
    """The bytes that a script writes to the file ``made``, and its output; it reads ``content`` from ``given``."""
    code, source, result = scratch / "run.mjs", scratch / "given.bin", scratch / "made.bin"
    code.write_text(OPENED + script)
    source.write_bytes(content)
    result.write_bytes(b"")
    process = subprocess.run(
        ["node", str(code), str(folder), str(source), str(result)], capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    return result.read_bytes(), process.stdout
