// Runs the test vector of @TITLE@: node test/check.mjs, or `check` in a page. pulse @VERSION@ wrote it. Exit code 0:
// every frame is as expected; 3: some differ, and the vector does not say how far they may.

const elementsOf = (port) => port.dims.reduce((count, size) => count * size, 1);
const plain = (element) => Number(element);

class Reader {
  constructor(buffer) {
    this.buffer = buffer;
    this.at = 0;
  }

  bytes(count) {
    if (this.at + count > this.buffer.byteLength) throw new Error("the vector is cut short");
    this.at += count;
    return this.buffer.slice(this.at - count, this.at);
  }

  number() {
    return Number(new DataView(this.bytes(8)).getBigInt64(0, true));
  }
}

/** What the vector says of a new stream of `model`, a `Model`; throws an Error for the first frame that is wrong. */
export function check(model, vector) {
  const reader = new Reader(vector);
  const { inputs, outputs } = model;
  const judged = reader.number() === 1;
  const steps = reader.number();
  const pulses = reader.number();
  const valid = outputs.map(() => 0);
  let same = 0;
  let all = 0;
  let largest = 0;
  let flushing;
  const readRest = () => {
    const frames = [];
    const rest = inputs.map((port, number) => {
      const bytes = reader.number();
      frames.push(reader.number());
      return model.elements(port, reader.bytes(bytes));
    });
    flushing = model.flush(rest, frames);
  };
  for (let pulse = 0; pulse < pulses; ++pulse) {
    const pulseInputs = pulse < steps ? inputs.map((port) => model.elements(port, reader.bytes(port.bytes))) : [];
    if (pulse === steps) readRest();
    const results = pulse < steps ? model.step(pulseInputs) : flushing.next().value;
    if (!results) throw new Error(`the flush ends after ${pulse} of ${pulses} pulses`);
    outputs.forEach((port, number) => {
      const { first, count, data } = results[number];
      const elements = elementsOf(port);
      const expected = model.elements(port, reader.bytes(port.bytes));
      const allowed = new Float64Array(reader.bytes(elements * 8));
      const inner = port.dims.slice(port.axis + 1).reduce((product, size) => product * size, 1);
      valid[number] += count;
      for (let i = 0; i < elements; ++i) {
        const frame = port.axis < 0 ? 0 : Math.floor(i / inner) % port.dims[port.axis];
        if (frame < first || frame >= first + count) continue;
        const value = plain(data[i]);
        const target = plain(expected[i]);
        const off = Object.is(value, target) || value === target ? 0 : Math.abs(value - target);
        same += off === 0;
        ++all;
        if (!(off <= largest)) largest = off;
        if (judged && !(off <= allowed[i]))
          throw new Error(
            `${port.name}, pulse ${pulse}, element ${i}: ${value}, not ${target}; ${allowed[i]} is allowed`,
          );
      }
    });
  }
  if (pulses === steps) readRest();
  if (!flushing.next().done) throw new Error(`the flush goes on after ${pulses} pulses`);
  outputs.forEach((port, number) => {
    const frames = reader.number();
    if (valid[number] !== frames) throw new Error(`${port.name}: ${valid[number]} frames, not ${frames}`);
  });
  return { pulses, all, same, largest, judged };
}

async function main() {
  const { readFile } = await import("node:fs/promises");
  const file = (name) => readFile(new URL(name, import.meta.url));
  const script = await file("../worklet.js");
  const { Model } = await import(`data:text/javascript;base64,${script.toString("base64")}`);
  const module = await WebAssembly.compile(await file("../module.wasm"));
  const content = (bytes) => bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  const vector = content(await file("vector.bin"));
  const external = WebAssembly.Module.exports(module).some(({ name }) => name === "@NAME@_weights");
  const weights = external ? content(await file("../@NAME@.weights")) : undefined;
  const { pulses, all, same, largest, judged } = check(new Model(module, weights), vector);
  const judgement = judged ? ", all within the tolerance" : "";
  console.log(
    `${pulses} pulses, ${same} of ${all} numbers equal, largest difference ${largest.toPrecision(3)}${judgement}`,
  );
  return judged || same === all ? 0 : 3;
}

if (globalThis.process?.versions?.node) {
  const { fileURLToPath } = await import("node:url");
  if (process.argv[1] === fileURLToPath(import.meta.url)) {
    try {
      process.exitCode = await main();
    } catch (error) {
      console.error(error.message);
      process.exitCode = 1;
    }
  }
}
