"""Run what ``pulse convert -o denoise.onnx`` wrote with onnxruntime alone, pulse by pulse: nothing of pulse is needed.

The file's metadata says which output feeds which input, what to drop at the start, and how long the output is.
"""

import base64
import io
import json
import re
import sys

import numpy as np
import onnxruntime
import soundfile


def frames(length: str, symbol: str, end: int) -> int:
    """Return the value of a length such as (T+1)/2: integer arithmetic, / rounds down."""
    text = length.replace(symbol, str(end)).replace("/", "//")
    if not re.fullmatch(r"([-+*/(),0-9]|min|max|>=|==)*", text):
        raise ValueError(f"not a length: {length}")
    return max(0, eval(text))


def main() -> None:
    """Stream one audio file into another: ``python run_exported.py MODEL SOUND OUT``."""
    model, source_path, target_path = sys.argv[1:]
    session = onnxruntime.InferenceSession(model)
    metadata = session.get_modelmeta().custom_metadata_map
    (source,), (target,) = json.loads(metadata["pulse_inputs"]), json.loads(metadata["pulse_outputs"])
    inputs = {value.name: value for value in session.get_inputs()}
    states = {}
    for pair in json.loads(metadata["pulse_states"]):
        port, stored = inputs[pair["input"]], base64.b64decode(pair.get("initial", ""))
        zeros = np.zeros(port.shape, np.int64 if port.type == "tensor(int64)" else np.float32)
        states[pair["input"], pair["output"]] = np.load(io.BytesIO(stored)) if stored else zeros

    samples, rate_hz = soundfile.read(source_path, dtype="float32")
    shape, pulse = inputs[source["name"]].shape, int(metadata["pulse_frames"])
    length = frames(target["length"], metadata["pulse_symbol"], len(samples))
    pulses = -(-max(len(samples), target["delay"] + length) // pulse)
    padded = np.pad(samples, (0, pulses * pulse - len(samples)))
    pieces = []
    for index in range(pulses):
        feeds = {source["name"]: padded[index * pulse : (index + 1) * pulse].reshape(shape)}
        feeds |= {read: value for (read, _), value in states.items()}
        if "pulse_end" in metadata:  # nobody knows where a live stream ends before it does
            feeds[metadata["pulse_end"]] = np.array(
                len(samples) if (index + 1) * pulse > len(samples) else 1 << 45
            )
        piece, *after = session.run([target["name"], *(write for _, write in states)], feeds)
        pieces.append(np.ravel(np.asarray(piece)))
        states = dict(zip(states, after))
    soundfile.write(target_path, np.concatenate(pieces)[target["delay"] :][:length], rate_hz)
    print(f"{pulses} pulses, {len(samples)} samples in, {length} out")


if __name__ == "__main__":
    main()
