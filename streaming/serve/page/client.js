/**
 * A client of `pulse serve`, for pages, workers and Node.js 22 or newer; docs/protocol.md describes the protocol.
 *
 *   import { PulseStream } from "./client.js";
 *   const stream = await PulseStream.open("ws://localhost:8080/v1/stream", {
 *     model: "denoiser",
 *     onframes: ({ name, first, values }) => console.log(name, first, values.length),
 *   });
 *   stream.send(samples);          // Float32Array; any number of frames, any time
 *   await stream.flush();          // resolves when the last frames have come
 *   stream.close();
 */

export const VERSION = 1;
const HEADER_BYTES = 24;
const INPUT = 1;
const FINAL = 3;
const EPOCHS = 65536;
const PATH = "/v1/stream";
/** Errors after which another connection may resume. */
const RETRYABLE_CODES = ["connection", "drain", "busy", "address"];
const PAUSE_S = 0.05; // between two attempts of a lost stream
const ANSWER_TIMEOUT_S = 10; // in which a server answers a hello
const ATTEMPT_S = 2; // in which a server resumes a lost stream, before the next one is asked

const ARRAYS = {
  f32: Float32Array,
  f64: Float64Array,
  i8: Int8Array,
  i16: Int16Array,
  i32: Int32Array,
  i64: BigInt64Array,
  u8: Uint8Array,
  u16: Uint16Array,
  u32: Uint32Array,
  u64: BigUint64Array,
  bool: Uint8Array,
};

/** What a server refuses, or a lost connection: `code` is one of the table in docs/protocol.md, or "connection". */
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
   * Open a stream. Resolves when a server is ready; rejects with a StreamError.
   *
   * url       of the server: ws://HOST:PORT, its path may be left out; of several, the first that takes the stream.
   *           In a fleet, the stream goes to the server that is named
   * options   fields of the hello: model, rate, format ("f32" or "pcm16"), block, outputs, token; and:
   *   patience          above 0: if the connection is lost, resume over another one, for which so many seconds are
   *                     looked, with bit-identical results. The server must keep checkpoints
   *   onframes({name, port, kind, first, frames, values, queue_us, step_us})   output frames, in order
   *   onevent(event)    an event of a detector
   *   onack(ack)        what the server has taken
   *   onresume(count)   the stream resumed over another connection; how many there were
   *   onclose(error)    the end: null after close(), else a StreamError
   */
  static async open(url, options = {}) {
    const stream = new PulseStream(url, options);
    stream._begin(await stream._openFirst());
    return stream;
  }

  constructor(url, options) {
    const { patience, onframes, onevent, onack, onresume, onclose, ...hello } = options;
    const ignore = () => {};
    this._on = { frames: onframes, event: onevent, ack: onack, resume: onresume, close: onclose };
    for (const name of Object.keys(this._on)) this._on[name] ??= ignore;
    this._urls = [url].flat().map((address) => withPath(String(address)));
    this._hello = { ...hello, confirms: patience > 0 };
    this._patience = patience ?? 0;
    this._waiting = { flushed: [], reset: [], pong: [], stats: [] };
    this._error = null;
    this._closed = this._flushing = this._ended = false;
    this._resumeName = null; // the name under which another connection resumes
    this._successors = [];
    this.connections = 1;
    this.ready = null;
    this.epoch = 0;
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
    if (!Number.isInteger(frames))
      throw new RangeError(`input ${input.name}: ${values.length} values are not whole frames`);
    const coded = this._isPcm(input) ? toPcm16(values) : values;
    const arrayType = this._isPcm(input) ? Int16Array : ARRAYS[input.dtype];
    if (!(coded instanceof arrayType)) throw new RangeError(`input ${input.name}: give a ${arrayType.name}`);
    const block = { first: this._nextFirst[port], frames, values: this._resumeName === null ? coded : coded.slice() };
    this._nextFirst[port] += frames;
    if (this._resumeName !== null) this._resend[port].push(block);
    this._sendBlock(port, block);
  }

  /** End the stream; resolves with the numbers of frames when the rest of all outputs has come. */
  flush() {
    this._flushing = true;
    return this._ask({ type: "flush" }, "flushed");
  }

  /** Begin a new stream in the same connection; resolves when the server has begun it. */
  reset() {
    this.epoch += 1;
    this._flushing = this._ended = false;
    this._nextFirst.fill(0);
    this._framesReceived.fill(0);
    this._resend = this.ready.inputs.map(() => []);
    this._forgot = false;
    return this._ask({ type: "reset" }, "reset");
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
    if (this._isLost) this._finish(null);
  }

  // ---- Connections

  /** A connection to the first server that takes the stream. */
  async _openFirst() {
    for (const [number, url] of this._urls.entries()) {
      try {
        return await this._try(url, { ...this._hello, follows: true });
      } catch (error) {
        if (number + 1 === this._urls.length || !RETRYABLE_CODES.includes(error.code)) throw error;
      }
    }
    throw new StreamError("hello", "no server", "give the address of one");
  }

  /** A stream of this server, or of those that it names. */
  async _try(url, hello, limitS = ANSWER_TIMEOUT_S) {
    let moved;
    try {
      return await connect(url, hello, limitS);
    } catch (error) {
      if (!error.moved) throw error;
      moved = error.moved;
    }
    const placed = { ...hello, follows: false, ...(hello.resume ? {} : { stream: moved.stream }) };
    for (const [number, address] of moved.urls.entries()) {
      try {
        return await connect(address, placed, limitS);
      } catch (error) {
        if (number + 1 === moved.urls.length || ![...RETRYABLE_CODES, "hello"].includes(error.code)) throw error;
      }
    }
    throw new StreamError("moved", `${url} names no server that has the stream`, "try again later");
  }

  _begin({ socket, ready }) {
    this.ready = ready;
    this.epoch = ready.epoch;
    this._nextFirst = ready.received.slice();
    this._framesReceived = ready.sent.slice(); // of each streaming output, the next frame
    this._streaming = ready.outputs.filter(({ kind }) => kind !== "final").map(({ port }) => port);
    this._resend = ready.inputs.map(() => []); // blocks that no checkpoint has
    this._saved = [];
    this._forgot = false;
    this._use(socket, ready);
  }

  _use(socket, ready) {
    this._socket = socket;
    this._isLost = false;
    this._resumeName = this._patience > 0 ? (ready.resume ?? null) : null;
    this._confirms = this._resumeName !== null && ready.confirms === true;
    this._successors = ready.urls ?? [];
    socket.onmessage = ({ data }) => (typeof data === "string" ? this._text(JSON.parse(data)) : this._frames(data));
    socket.onclose = ({ code, reason }) => this._end(code, reason);
  }

  /** The connection has ended: look for another one, or report the end. */
  async _end(code, reason) {
    if (this._closed) return this._finish(null);
    const error = this._error ?? connectionError(code, reason);
    this._error = null;
    if (this._resumeName === null || !RETRYABLE_CODES.includes(error.code)) return this._finish(error);
    this._isLost = true;
    const connection = await this._find().catch((refused) => refused);
    if (this._closed) {
      connection.socket?.close(1000);
      return undefined;
    }
    return connection.socket ? this._continueOver(connection) : this._finish(connection);
  }

  /** A server that continues it; its successors in a fleet come first. */
  async _find() {
    const end = performance.now() + 1000 * this._patience;
    let last = null;
    while (performance.now() < end && !this._closed) {
      const successors = this._successors.map(withPath);
      for (const url of new Set([...successors, ...this._urls])) {
        const hello = { ...this._hello, resume: this._resumeName, follows: !successors.includes(url) };
        try {
          return await this._try(url, hello, ATTEMPT_S);
        } catch (error) {
          last = error;
        }
        if (last.code === "resume" && !this._forgot) {
          // under its name, from the first frame: the version stays
          const renamed = { ...hello, resume: undefined, stream: this._resumeName };
          const connection = await this._try(url, renamed, ATTEMPT_S).catch((error) => error);
          if (connection.socket) return connection;
        }
        await new Promise((resolve) => setTimeout(resolve, 1000 * PAUSE_S));
      }
    }
    const within = `no server resumes the stream within ${this._patience} s`;
    throw new StreamError("resume", last ? `${within}: ${last.message}` : within, "begin a new stream");
  }

  /** Send again what the server of another connection does not have. */
  _continueOver({ socket, ready }) {
    this._use(socket, ready);
    this.connections += 1;
    const behind = this.epoch - ready.epoch;
    for (let count = 0; count < behind; count++) this._say({ type: "reset" });
    while (this._waiting.reset.length > behind)
      this._waiting.reset.shift().resolve({ type: "reset", epoch: this.epoch });
    for (const [port, blocks] of this._resend.entries()) {
      const from = behind ? 0 : ready.received[port];
      const size = valuesInFrame(this.ready.inputs[port]);
      for (const { first, frames, values } of blocks) {
        const skip = Math.max(0, from - first);
        if (skip < frames)
          this._sendBlock(port, { first: first + skip, frames: frames - skip, values: values.subarray(skip * size) });
      }
    }
    if (this._flushing && !this._ended) this._say({ type: "flush" });
    for (const _ of this._waiting.pong) this._say({ type: "ping" });
    for (const _ of this._waiting.stats) this._say({ type: "stats" });
    this._on.resume(this.connections);
  }

  _finish(error) {
    this._closed = true;
    this._error = error;
    const reason = error ?? new StreamError("connection", "the stream is closed");
    for (const promises of Object.values(this._waiting)) for (const { reject } of promises.splice(0)) reject(reason);
    this._on.close(error);
  }

  // ---- Messages

  _say(message) {
    if (this._socket.readyState === WebSocket.OPEN) this._socket.send(JSON.stringify(message));
  }

  _ask(message, answer) {
    if (this._closed) return Promise.reject(this._error ?? new StreamError("connection", "the stream is closed"));
    this._say(message);
    return new Promise((resolve, reject) => this._waiting[answer].push({ resolve, reject }));
  }

  _sendBlock(port, { first, frames, values }) {
    if (this._socket.readyState !== WebSocket.OPEN) return; // the next connection sends it, if there is one
    const size = valuesInFrame(this.ready.inputs[port]);
    const bytes = values.BYTES_PER_ELEMENT;
    const maxFrames = Math.max(1, Math.floor((this.ready.limits.message_bytes - HEADER_BYTES) / (size * bytes)));
    for (let at = 0; at < frames; at += maxFrames) {
      const count = Math.min(maxFrames, frames - at);
      const part = values.subarray(at * size, (at + count) * size);
      const message = new Uint8Array(HEADER_BYTES + part.byteLength);
      const view = new DataView(message.buffer);
      view.setUint8(0, INPUT);
      view.setUint8(1, port);
      view.setUint16(2, this.epoch % EPOCHS, true);
      view.setUint32(4, count, true);
      view.setBigUint64(8, BigInt(first + at), true);
      message.set(new Uint8Array(part.buffer, part.byteOffset, part.byteLength), HEADER_BYTES);
      this._socket.send(message);
    }
  }

  _isPcm(port) {
    return port.kind === "sound" && this.ready.format === "pcm16";
  }

  _text(message) {
    const isCurrent = (message.epoch ?? this.epoch) === this.epoch;
    switch (message.type) {
      case "error":
        this._error = errorOf(message);
        return undefined;
      case "event":
        return isCurrent ? this._on.event(message) : undefined;
      case "ack":
        return isCurrent ? this._acknowledge(message) : undefined;
      case "servers":
        this._successors = message.urls;
        return undefined;
      case "flushed":
        if (!isCurrent) return undefined;
        this._ended = true;
      // falls through
      default:
        return this._waiting[message.type]?.shift()?.resolve(message); // types of later versions are left out
    }
  }

  _acknowledge(message) {
    if (this._confirms && String(message.safe) !== String(this._saved)) {
      this._saved = message.safe; // all outputs before this checkpoint are here
      this._say({ type: "confirm", epoch: this.epoch, safe: this._saved });
    }
    for (const [port, blocks] of this._resend.entries()) {
      while (blocks.length && blocks[0].first + blocks[0].frames <= message.safe[port]) {
        blocks.shift();
        this._forgot = true;
      }
    }
    this._on.ack(message);
  }

  _frames(message) {
    const view = new DataView(message);
    const port = view.getUint8(1);
    if (view.getUint16(2, true) !== this.epoch % EPOCHS) return;
    const output = this.ready.outputs.find((candidate) => candidate.port === port);
    const array = this._isPcm(output) ? Int16Array : ARRAYS[output.dtype];
    const kind = view.getUint8(0) === FINAL ? "final" : output.kind;
    const place = this._streaming.indexOf(port);
    let coded = new array(message, HEADER_BYTES);
    let first = Number(view.getBigUint64(8, true));
    let frames = view.getUint32(4, true);
    if (kind !== "final") {
      const skip = this._framesReceived[place] - first; // came over the connection before
      if (skip < 0) {
        this._resumeName = null;
        const missing = `frames ${this._framesReceived[place]} to ${first - 1}`;
        this._error = new StreamError("gap", `output ${output.name}: ${missing} are lost`, "begin a new stream");
        this._socket.close(1000);
        return;
      }
      if (skip >= frames) return;
      this._framesReceived[place] = first + frames;
      coded = skip ? coded.slice(skip * valuesInFrame(output)) : coded;
      first += skip;
      frames -= skip;
    }
    this._on.frames({
      name: output.name,
      port,
      kind,
      frames,
      first,
      values: this._isPcm(output) ? fromPcm16(coded) : coded,
      queue_us: view.getUint32(16, true),
      step_us: view.getUint32(20, true),
    });
  }
}

/** A connection whose server is ready: its WebSocket, and what the server says. Rejects with a StreamError. */
function connect(url, hello, limitS) {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, "pulse.v1");
    let refusal = null;
    const timer = setTimeout(() => socket.close(), 1000 * limitS);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => socket.send(JSON.stringify({ type: "hello", version: VERSION, ...hello }));
    socket.onmessage = ({ data }) => {
      clearTimeout(timer);
      const message = JSON.parse(data);
      if (message.type === "error") refusal = errorOf(message);
      else resolve({ socket, ready: message });
    };
    socket.onclose = ({ code, reason }) => {
      clearTimeout(timer);
      reject(refusal ?? connectionError(code, reason));
    };
  });
}

function errorOf(message) {
  const error = new StreamError(message.code, message.message, message.hint);
  if (message.code === "moved") error.moved = { stream: message.stream, urls: message.urls.map(withPath) };
  return error;
}

function connectionError(code, reason) {
  const message = `the connection ended with status ${code}${reason ? `: ${reason}` : ""}`;
  return new StreamError("connection", message, "is the server still there?");
}

function withPath(url) {
  return url.includes(PATH) ? url : url.replace(/\/+$/, "") + PATH;
}

/** Samples in -1..1 as 16-bit numbers, 32768 for 1. */
export function toPcm16(samples) {
  return Int16Array.from(samples, (value) => Math.max(-32768, Math.min(32767, Math.round(value * 32768))));
}

/** 16-bit numbers as samples. */
export function fromPcm16(samples) {
  return Float32Array.from(samples, (value) => value / 32768);
}
