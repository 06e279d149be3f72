"""Modules of WebAssembly run by Node.js, through the JavaScript that browsers get."""

import subprocess
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import numpy as np
import pytest
from numpy.typing import NDArray

STEPS = """
import { readFileSync, writeFileSync } from "node:fs";
const [folder, given, result, frames, rate, block] = process.argv.slice(2);
const { Model, Sound } = await import(`file://${folder}/worklet.js`);
const module = new WebAssembly.Module(readFileSync(`${folder}/module.wasm`));
const bytes = readFileSync(given), kinds = { float32: Float32Array, int64: BigInt64Array, float64: Float64Array };
let at = 0;
const take = (port, count) => {
  const Kind = kinds[port.dtype] ?? Uint8Array, size = (port.bytes / port.frames) * count;
  const copy = bytes.buffer.slice(bytes.byteOffset + at, bytes.byteOffset + at + size);
  at += size;
  return new Kind(copy);
};
const parts = [];
const write = (results) => results.forEach(({ first, count, data }) => {
  parts.push(Buffer.from(new BigInt64Array([BigInt(first), BigInt(count)]).buffer), Buffer.from(data.buffer));
});
"""
MODEL = (
    STEPS
    + """
const model = new Model(module), rest = [];
for (let step = 0; step < Number(frames); ++step) write(model.step(model.inputs.map((port) => take(port, port.frames))));
const counts = JSON.parse(rate);
const left = model.inputs.map((port, number) => (counts[number] ? take(port, counts[number]) : undefined));
for (const results of model.flush(left, counts)) write(results);
writeFileSync(result, Buffer.concat(parts));
"""
)
SOUND = (
    STEPS
    + """
const sound = new Sound(module, Number(rate), Number(block)), made = new Float32Array(Number(frames));
const heard = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
let pulses = 0;
for (let start = 0; start < heard.length; start += Number(block)) {
  const end = Math.min(start + Number(block), heard.length);
  sound.process([heard.subarray(start, end)], made.subarray(start, end), end - start, () => (pulses += sound.frames().length));
}
writeFileSync(result, Buffer.from(made.buffer));
console.log(JSON.stringify({ delay: sound.delay, pulses, ...sound.counters() }));
"""
)


def require_tools() -> None:
    """Skip the test where a module can be neither linked nor run."""
    if find_spec("ziglang") is None:
        pytest.skip("ziglang is missing: pip install 'pulse-stream[build]'")
    if which("node") is None:
        pytest.skip("Node.js is missing")


def run_node(script: str, folder: Path, scratch: Path, given: bytes, *arguments: str) -> tuple[bytes, str]:
    """What a script writes, and what it prints. The script has the folder of a library, and these bytes in a file."""
    code, source, result = scratch / "run.mjs", scratch / "given.bin", scratch / "result.bin"
    code.write_text(script)
    source.write_bytes(given)
    (folder / "package.json").write_text('{"type": "module"}')
    done = subprocess.run(
        ["node", str(code), str(folder), str(source), str(result), *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return result.read_bytes(), done.stdout


def floats(data: bytes) -> NDArray[np.float32]:
    """Bytes as sound."""
    return np.frombuffer(data, np.float32)
