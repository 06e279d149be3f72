// In a worker, so that drawing never holds up the sound: between the audio thread and the server, or the model itself.

let stream = null;
let wire = null;
let played; // the port whose output is heard
let timer = 0;
const MAX_WAITING_S = 5; // of sound that may wait for the network
const PATIENCE_S = 10; // for a server that resumes after a lost connection, if it keeps checkpoints

const post = (message) => self.postMessage(message);
const fail = ({ code, message, hint }) => post({ failed: { code, message, hint: hint ?? "" } });

/** The model itself, as WebAssembly: what a PulseStream does, without a server. */
class LocalStream {
  static async open(folder, token, ports, { onframes }) {
    const { Model } = await import(new URL("worklet.js", folder).href);
    const answer = await fetch(
      new URL("module.wasm", folder),
      token ? { headers: { Authorization: `Bearer ${token}` } } : {},
    );
    if (!answer.ok) throw new Error(`module.wasm: the server answers with status ${answer.status}`);
    return new LocalStream(new Model(await WebAssembly.compile(await answer.arrayBuffer())), ports, onframes);
  }

  constructor(model, ports, onframes) {
    this.ready = ports;
    this.model = model;
    this.onframes = onframes;
    this.pulse = model.inputs[0].frames;
    this.waiting = new Float32Array(0);
    this.sent = ports.outputs.map(() => 0);
    this.bufferedBytes = 0;
  }

  send(samples) {
    const joined = new Float32Array(this.waiting.length + samples.length);
    joined.set(this.waiting);
    joined.set(samples, this.waiting.length);
    let at = 0;
    for (; at + this.pulse <= joined.length; at += this.pulse) {
      const began = performance.now();
      const results = this.model.step([joined.subarray(at, at + this.pulse)]);
      this.deliver(results, (performance.now() - began) * 1000);
    }
    this.waiting = joined.slice(at);
  }

  deliver(results, step_us) {
    for (const { name, first, count, data } of results) {
      const output = this.ready.outputs.find((candidate) => candidate.name === name);
      const place = this.ready.outputs.indexOf(output);
      const port = this.model.outputs.find((candidate) => candidate.name === name);
      if (port.axis < 0 || !count) continue;
      const values = framesOf(data, port.dims, port.axis, first, count);
      this.onframes({
        name,
        port: output.port,
        kind: output.kind,
        first: this.sent[place],
        frames: count,
        values,
        queue_us: 0,
        step_us,
      });
      this.sent[place] += count;
    }
  }

  async flush() {
    for (const results of this.model.flush([this.waiting], [this.waiting.length])) this.deliver(results, 0);
    return { sent: this.sent };
  }

  async ping() {
    return 0;
  }

  close() {}
}

/** Some frames of an array, one after the other: time, which is any of its axes, becomes the first. */
function framesOf(data, dims, axis, first, count) {
  const inner = dims.slice(axis + 1).reduce((a, b) => a * b, 1);
  const outer = dims.slice(0, axis).reduce((a, b) => a * b, 1);
  const result = new data.constructor(count * outer * inner);
  let at = 0;
  for (let frame = first; frame < first + count; frame++) {
    for (let o = 0; o < outer; o++) {
      for (let i = 0; i < inner; i++) result[at++] = data[(o * dims[axis] + frame) * inner + i];
    }
  }
  return result;
}

async function open({ client, url, hello, folder, token, ports, output, port }) {
  wire = port;
  const early = [];
  wire.onmessage = ({ data }) => (stream ? take(data) : early.push(data));
  if (folder) {
    stream = await LocalStream.open(folder, token, ports, { onframes: deliver });
  } else {
    const { PulseStream } = await import(client);
    stream = await PulseStream.open(url, {
      ...hello,
      patience: PATIENCE_S,
      onframes: deliver,
      onevent: (event) => post({ event }),
      onclose: (error) => {
        clearInterval(timer);
        if (error) fail(error);
      },
    });
  }
  played = output;
  post({ ready: true });
  for (const data of early) take(data);
  measure();
  timer = setInterval(measure, 1000);
}

async function measure() {
  const roundTrip = await stream.ping().catch(() => null); // the end of the connection is reported by onclose
  if (roundTrip !== null) post({ network_ms: roundTrip });
}

async function take({ samples, finish }) {
  try {
    if (samples?.length) stream.send(samples);
    if (stream.bufferedBytes > MAX_WAITING_S * 4 * stream.ready.inputs[0].rate) {
      stream.close();
      fail({
        code: "network",
        message: "The network is slower than the audio.",
        hint: "Try another network, or the model in the page.",
      });
    }
    if (finish) {
      const { sent } = await stream.flush();
      wire.postMessage({ total: played === undefined ? 0 : sent[played] });
      post({ flushed: true });
    }
  } catch (error) {
    fail(error);
  }
}

function deliver({ port, kind, name, first, frames, values, queue_us, step_us }) {
  if (port === played) {
    wire.postMessage({ first, samples: values }, [values.buffer]);
  } else {
    post({ frames: { name, kind, first, frames, values } });
    const { rate } = stream.ready.outputs.find((output) => output.port === port);
    if (rate && played === undefined) wire.postMessage({ arrived: first / rate });
  }
  post({ times: { queue_us, step_us } });
}

self.onmessage = ({ data }) => {
  if (data.open) open({ ...data.open, port: data.port }).catch(fail);
  if (data.close) {
    clearInterval(timer);
    stream?.close();
    self.close();
  }
};
