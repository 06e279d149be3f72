/**
 * A client of `pulse serve`, for pages, workers and Node.js 22 or newer; docs/protocol.md describes the protocol.
 *
 *   import { PulseStream } from "./client.js";
 *   const stream = await PulseStream.open("ws://localhost:8765/v1/stream", {
 *     model: "denoise",
 *     onframes: ({ name, first, values }) => console.log(name, first, values.length),
 *   });
 *   stream.send(samples);          // Float32Array; any number of frames, any time
 *   await stream.flush();          // resolves when the last frames have come
 *   stream.close();
 */

export const VERSION = 1;
const HEADER_BYTES = 24;
const INPUT = 1, FINAL = 3;
const EPOCHS = 65536;

const ARRAYS = {
  f32: Float32Array, f64: Float64Array,
  i8: Int8Array, i16: Int16Array, i32: Int32Array, i64: BigInt64Array,
  u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, u64: BigUint64Array,
  bool: Uint8Array,
};

/** What a server refuses, or a connection that is lost: `code` is one of the table in docs/protocol.md, or "connection". */
export class StreamError extends Error {
  constructor(code, message, hint = "") {
    super(message);
    this.name = "StreamError";
    this.code = code;
    this.hint = hint;
  }
}

/** Values in one frame of a port: the product of its sizes, time left out. */
export function valuesInFrame(port) {
  return port.shape.reduce((product, size) => product * (size ?? 1), 1);
}

/** The models of a server: the list that /v1/models gives. Throws StreamError. */
export async function listModels(base, token = "") {
  let answer;
  try {
    answer = await fetch(new URL("v1/models", base), token ? { headers: { Authorization: `Bearer ${token}` } } : {});
  } catch {
    throw new StreamError("connection", "the server does not answer", "start it with pulse serve");
  }
  if (answer.status === 401 || answer.status === 403) throw new StreamError("token", "the server asks for a token");
  if (!answer.ok) throw new StreamError("connection", `the server answers with status ${answer.status}`);
  return (await answer.json()).models;
}

/** One stream of a model. */
export class PulseStream {
  /**
   * Open a stream. Resolves when the server is ready; rejects with a StreamError.
   *
   * url       of the WebSocket: ws://…/v1/stream
   * options   fields of the hello: model, rate, format ("f32" or "pcm16"), block, outputs, token; and callbacks:
   *   onframes({name, port, kind, first, frames, values, queue_us, step_us})   output frames, in order
   *   onevent(event)    an event of a detector
   *   onack(ack)        what the server has taken
   *   onclose(error)    the end: null after close(), else a StreamError
   */
  static open(url, options = {}) {
    return new PulseStream(url, options)._opened;
  }

  constructor(url, options) {
    const { onframes, onevent, onack, onclose, ...hello } = options;
    const nothing = () => {};
    this._on = { frames: onframes ?? nothing, event: onevent ?? nothing, ack: onack ?? nothing, close: onclose ?? nothing };
    this._waiting = { flushed: [], reset: [], pong: [], stats: [] };
    this._error = null;
    this._closed = false;
    this.ready = null;
    this.epoch = 0;
    this._socket = new WebSocket(url, "pulse.v1");
    this._socket.binaryType = "arraybuffer";
    this._opened = new Promise((resolve, reject) => { this._settle = { resolve, reject }; });
    this._socket.onopen = () => this._say({ type: "hello", version: VERSION, ...hello });
    this._socket.onmessage = ({ data }) => (typeof data === "string" ? this._text(JSON.parse(data)) : this._frames(data));
    this._socket.onclose = ({ code, reason }) => this._end(code, reason);
  }

  /** Bytes that were sent and have not left this machine. */
  get bufferedBytes() {
    return this._socket.bufferedAmount;
  }

  /** Send frames of an input: an array of its dtype, or a Float32Array of sound. Throws StreamError, RangeError. */
  send(values, port = 0) {
    if (!this.ready) throw new StreamError("hello", "the stream is not open yet", "await PulseStream.open");
    if (this._closed) throw this._error ?? new StreamError("connection", "the stream is closed");
    const input = this.ready.inputs[port];
    const frames = values.length / valuesInFrame(input);
    if (!Number.isInteger(frames)) throw new RangeError(`input ${input.name}: ${values.length} values are no whole frames`);
    const coded = this._isPcm(input) ? toPcm16(values) : values;
    const wanted = this._isPcm(input) ? Int16Array : ARRAYS[input.dtype];
    if (!(coded instanceof wanted)) throw new RangeError(`input ${input.name}: give a ${wanted.name}`);
    const message = new Uint8Array(HEADER_BYTES + coded.byteLength);
    const view = new DataView(message.buffer);
    view.setUint8(0, INPUT);
    view.setUint8(1, port);
    view.setUint16(2, this.epoch % EPOCHS, true);
    view.setUint32(4, frames, true);
    view.setBigUint64(8, BigInt(this._sent[port]), true);
    message.set(new Uint8Array(coded.buffer, coded.byteOffset, coded.byteLength), HEADER_BYTES);
    this._sent[port] += frames;
    this._socket.send(message);
  }

  /** End the stream; resolves with the numbers of frames when the rest of all outputs has come. */
  flush() {
    return this._ask({ type: "flush" }, "flushed");
  }

  /** Begin a new stream in the same connection; resolves when the server has begun it. */
  async reset() {
    const answer = await this._ask({ type: "reset" }, "reset");
    this.epoch = answer.epoch;
    this._sent.fill(0);
    return answer;
  }

  /** The time to the server and back in ms. */
  async ping() {
    const began = performance.now();
    await this._ask({ type: "ping" }, "pong");
    return performance.now() - began;
  }

  /** The server's times of this stream: queue_us, step_us, answer_us, each with p50, p99 and max. */
  stats() {
    return this._ask({ type: "stats" }, "stats");
  }

  /** End the connection; what is under way is dropped. */
  close() {
    this._closed = true;
    this._socket.close(1000);
  }

  _say(message) {
    this._socket.send(JSON.stringify(message));
  }

  _ask(message, answer) {
    if (this._closed) return Promise.reject(this._error ?? new StreamError("connection", "the stream is closed"));
    this._say(message);
    return new Promise((resolve, reject) => this._waiting[answer].push({ resolve, reject }));
  }

  _isPcm(port) {
    return port.kind === "sound" && this.ready.format === "pcm16";
  }

  _text(message) {
    switch (message.type) {
      case "ready":
        this.ready = message;
        this.epoch = message.epoch;
        this._sent = message.received.slice();
        return this._settle.resolve(this);
      case "error":
        this._error = new StreamError(message.code, message.message, message.hint);
        return undefined;
      case "event":
      case "ack":
        return this._on[message.type](message);
      default:
        return this._waiting[message.type]?.shift()?.resolve(message); // types of later versions are left out
    }
  }

  _frames(message) {
    const view = new DataView(message);
    const port = view.getUint8(1);
    const output = this.ready.outputs.find((each) => each.port === port);
    const array = this._isPcm(output) ? Int16Array : ARRAYS[output.dtype];
    const coded = new array(message, HEADER_BYTES);
    this._on.frames({
      name: output.name,
      port,
      kind: view.getUint8(0) === FINAL ? "final" : output.kind,
      frames: view.getUint32(4, true),
      first: Number(view.getBigUint64(8, true)),
      values: this._isPcm(output) ? fromPcm16(coded) : coded,
      queue_us: view.getUint32(16, true),
      step_us: view.getUint32(20, true),
    });
  }

  _end(code, reason) {
    const asked = this._closed;
    const lost = `the connection ended with status ${code}${reason ? `: ${reason}` : ""}`;
    if (!asked) this._error ??= new StreamError("connection", lost, "is the server still there?");
    this._closed = true;
    const error = this._error ?? new StreamError("connection", "the stream is closed");
    this._settle.reject(error);
    for (const waiting of Object.values(this._waiting)) for (const each of waiting.splice(0)) each.reject(error);
    this._on.close(asked ? null : this._error);
  }
}

/** Samples in -1..1 as 16-bit numbers, 32768 for 1. */
export function toPcm16(samples) {
  return Int16Array.from(samples, (value) => Math.max(-32768, Math.min(32767, Math.round(value * 32768))));
}

/** 16-bit numbers as samples. */
export function fromPcm16(samples) {
  return Float32Array.from(samples, (value) => value / 32768);
}
