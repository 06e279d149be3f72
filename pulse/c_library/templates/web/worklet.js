// Runs module.wasm beside it: in an audio worklet, in a worker, or anywhere else. pulse @VERSION@ wrote it;
// pulse.d.ts has its types. The audio thread loads it by context.audioWorklet.addModule, which PulseNode.create does.

const ENDED = 1;
const REASONS = {
  1: "the stream has ended: call reset()",
  [-1]: "a pointer is null",
  [-2]: "too little memory",
  [-3]: "the memory is not aligned",
  [-4]: "there is no stream",
  [-5]: "the snapshot is of another model, or damaged",
  [-6]: "the model takes no stream of this length",
  [-7]: "a whole pulse is left: call step()",
  [-8]: "the model has no result for these values: call reset()",
  [-9]: "the weights are not those of the model",
};
const ARRAYS = {
  float32: Float32Array,
  float64: Float64Array,
  float16: Uint16Array,
  bool: Uint8Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
};
const POINTER = 4;
const PORT = 48;
const ALIGNMENT = 64;
const PAGE = 65536;
const CHUNK = 256;
const MAX_RATIO = 256; // of the two rates of a resampler; beyond it there is no size
const MATH = Object.fromEntries(Object.getOwnPropertyNames(Math).map((name) => [name, Math[name]]));
for (const name of Object.keys(MATH)) MATH[`${name}f`] = MATH[name];
MATH.fmod = MATH.fmodf = (a, b) => a % b;
MATH.fabs = MATH.fabsf = Math.abs;

/** The channels of a port of audio: the values of a frame. */
const channelsOf = (port) => port.bytes / 4 / port.frames;
const alignUp = (bytes) => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;

function importsOf(module) {
  const env = {};
  for (const { name, kind } of WebAssembly.Module.imports(module)) {
    if (kind !== "function" || !MATH[name]) throw new Error(`module.wasm needs ${name}, which browsers do not have`);
    env[name] = MATH[name];
  }
  return { env };
}

class Instance {
  constructor(module) {
    this.exports = new WebAssembly.Instance(module, importsOf(module)).exports;
    this.prefix = Object.keys(this.exports)
      .find((name) => name.endsWith("_snapshot_size"))
      .slice(0, -"_snapshot_size".length);
    this.memory = this.exports.memory;
    this.end = alignUp(this.exports.__heap_base.value);
    const countAt = this.allocate(POINTER);
    const at = this.call("ports", countAt);
    const count = new DataView(this.memory.buffer).getInt32(countAt, true);
    this.ports = Array.from({ length: count }, (_, number) => this.portAt(at + number * PORT));
  }

  call(name, ...operands) {
    return this.exports[`${this.prefix}_${name}`](...operands);
  }

  do(name, ...operands) {
    const code = this.call(name, ...operands);
    if (code && !(code === ENDED && name === "flush"))
      throw new Error(`${this.prefix}: ${REASONS[code] ?? `code ${code}`}`);
    return code;
  }

  allocate(bytes) {
    const at = this.end;
    const missing = at + alignUp(bytes) - this.memory.buffer.byteLength;
    if (missing > 0) this.memory.grow(Math.ceil(missing / PAGE));
    this.end += alignUp(bytes);
    return at;
  }

  text(at) {
    const bytes = new Uint8Array(this.memory.buffer);
    let text = "";
    for (let end = at; bytes[end]; ++end) text += `%${bytes[end].toString(16).padStart(2, "0")}`;
    return decodeURIComponent(text);
  }

  portAt(at) {
    const view = new DataView(this.memory.buffer);
    const word = (number) => view.getInt32(at + number * 4, true);
    const dims = Array.from({ length: word(3) }, (_, axis) => view.getUint32(word(4) + axis * 4, true));
    return {
      name: this.text(word(0)),
      dtype: this.text(word(1)),
      isOutput: word(2) === 1,
      dims,
      bytes: word(5),
      axis: word(6),
      frames: word(7),
      delay: word(8),
      rate: view.getFloat64(at + 40, true),
    };
  }

  /** The channels of the inputs, and of the output that is played; one, of silence, if none is. */
  channels() {
    if (!this.exports[`${this.prefix}_blocks_init`])
      throw new Error(`${this.prefix}: built without sound (pulse build says why); use Model, pulse by pulse`);
    const inputs = this.ports.filter((port) => !port.isOutput).map(channelsOf);
    const output = this.call("blocks_sound_output");
    return [inputs, output < 0 ? 1 : channelsOf(this.ports[inputs.length + output])];
  }

  get hasExternalWeights() {
    return `${this.prefix}_weights` in this.exports;
  }

  /** Gives a stream the content of the file of weights. */
  giveWeights(stream, content) {
    if (!this.hasExternalWeights) return;
    if (!content) throw new Error(`${this.prefix}: give the content of ${this.prefix}.weights, an ArrayBuffer, too`);
    const at = this.allocate(content.byteLength);
    new Uint8Array(this.memory.buffer).set(new Uint8Array(content), at);
    this.do("weights", stream, at, content.byteLength);
  }

  arrayAt(port, at) {
    const Kind = ARRAYS[port.dtype];
    return new Kind(this.memory.buffer, at, port.bytes / Kind.BYTES_PER_ELEMENT);
  }

  pointers(addresses) {
    const at = this.allocate(POINTER * Math.max(addresses.length, 1));
    new Uint32Array(this.memory.buffer, at, addresses.length).set(addresses);
    return at;
  }
}

/** A stream of the model, pulse by pulse. */
export class Model {
  constructor(module, weights) {
    this.instance = new Instance(module);
    this.ports = this.instance.ports;
    this.inputs = this.ports.filter((port) => !port.isOutput);
    this.outputs = this.ports.filter((port) => port.isOutput);
    const { instance } = this;
    const bytes = instance.call("size");
    const handleAt = instance.allocate(POINTER);
    const memory = instance.allocate(bytes);
    instance.do("init", memory, bytes, handleAt);
    this.stream = new DataView(instance.memory.buffer).getUint32(handleAt, true);
    instance.giveWeights(this.stream, weights);
    this.inputPlaces = this.inputs.map((port) => instance.allocate(port.bytes));
    this.outputPlaces = this.outputs.map((port) => instance.allocate(port.bytes));
    this.inputTable = instance.pointers(this.inputPlaces);
    this.outputTable = instance.pointers(this.outputPlaces);
    this.frameTable = instance.pointers(this.inputs.map(() => 0));
    this.firstAt = instance.allocate(POINTER);
  }

  step(inputs) {
    this.give(inputs);
    this.instance.do("step", this.stream, this.inputTable, this.outputTable);
    return this.results();
  }

  *flush(rest = [], frames = []) {
    this.give(rest);
    new Uint32Array(this.instance.memory.buffer, this.frameTable, this.inputs.length).set(frames);
    while (this.instance.do("flush", this.stream, this.inputTable, this.frameTable, this.outputTable) !== ENDED)
      yield this.results();
  }

  reset() {
    this.instance.do("reset", this.stream);
  }

  snapshot() {
    const bytes = this.snapshotBytes();
    this.instance.do("snapshot", this.stream, this.snapshotAt, bytes);
    return new Uint8Array(this.instance.memory.buffer, this.snapshotAt, bytes).slice();
  }

  restore(snapshot) {
    const bytes = this.snapshotBytes();
    if (snapshot.length !== bytes) throw new Error(`a snapshot has ${bytes} bytes, got ${snapshot.length}`);
    new Uint8Array(this.instance.memory.buffer, this.snapshotAt, bytes).set(snapshot);
    this.instance.do("restore", this.stream, this.snapshotAt, bytes);
  }

  snapshotBytes() {
    const bytes = this.instance.call("snapshot_size");
    this.snapshotAt ??= this.instance.allocate(bytes);
    return bytes;
  }

  /** Bytes as elements of a port. */
  elements(port, buffer) {
    return new ARRAYS[port.dtype](buffer);
  }

  give(inputs) {
    this.inputs.forEach((port, number) => {
      if (!inputs[number]) return;
      const place = this.instance.arrayAt(port, this.inputPlaces[number]);
      if (inputs[number].length > place.length)
        throw new Error(`${port.name}: a pulse has ${place.length} elements, got ${inputs[number].length}`);
      place.set(inputs[number]);
    });
  }

  results() {
    return this.outputs.map((port, number) => {
      const count = this.instance.call("valid", this.stream, number, this.firstAt);
      const first = new DataView(this.instance.memory.buffer).getUint32(this.firstAt, true);
      return { name: port.name, first, count, data: this.instance.arrayAt(port, this.outputPlaces[number]).slice() };
    });
  }
}

/** Sound through the model, in blocks of any size and at any rate: what the audio worklet runs. */
export class Sound {
  constructor(module, rateHz, blockFrames = 128, weights = undefined) {
    const instance = (this.instance = new Instance(module));
    [this.inputChannels, this.outputChannels] = instance.channels();
    const bytes = instance.call("blocks_size", rateHz, blockFrames);
    if (!bytes) {
      const reason = `${rateHz} Hz and the model's rate are more than ${MAX_RATIO} times apart`;
      throw new Error(`${reason}; choose another rate`);
    }
    const handleAt = instance.allocate(POINTER);
    const memory = instance.allocate(bytes);
    instance.do("blocks_init", memory, bytes, rateHz, blockFrames, handleAt);
    this.blocks = new DataView(instance.memory.buffer).getUint32(handleAt, true);
    this.delay = instance.call("blocks_delay", this.blocks);
    this.rateHz = rateHz;
    this.inputs = instance.ports.filter((port) => !port.isOutput);
    this.outputs = instance.ports.filter((port) => port.isOutput);
    this.soundOutput = instance.call("blocks_sound_output");
    this.stream = instance.call("blocks_stream", this.blocks);
    instance.giveWeights(this.stream, weights);
    const placesOf = (channels) => Array.from({ length: channels }, () => instance.allocate(CHUNK * 4));
    const places = [this.inputChannels.flatMap(placesOf), placesOf(this.outputChannels)];
    [this.inputTable, this.outputTable] = places.map((addresses) => instance.pointers(addresses));
    this.countersAt = instance.allocate(16);
    const arrayAt = (at) => new Float32Array(instance.memory.buffer, at, CHUNK);
    [this.inputArrays, this.outputArrays] = places.map((addresses) => addresses.map(arrayAt));
    this.feed = instance.exports[`${instance.prefix}_blocks_feed`];
    this.run = instance.exports[`${instance.prefix}_blocks_run`];
    this.take = instance.exports[`${instance.prefix}_blocks_take`];
  }

  /**
   * `inputs`: a Float32Array or undefined (silence) for each channel, input by input; `outputs`: one for each channel
   * of the output, or undefined. `onPulse` runs after pulses.
   */
  process(inputs, outputs, frames, onPulse) {
    for (let done = 0; done < frames; done += CHUNK) {
      const count = Math.min(CHUNK, frames - done);
      for (let number = 0; number < this.inputArrays.length; ++number) {
        const source = inputs[number];
        if (source)
          this.inputArrays[number].set(done || source.length > count ? source.subarray(done, done + count) : source);
        else this.inputArrays[number].fill(0, 0, count);
      }
      this.feed(this.blocks, this.inputTable, count);
      while (this.run(this.blocks)) onPulse?.(this);
      this.take(this.blocks, this.outputTable, count);
      for (let number = 0; outputs && number < this.outputArrays.length; ++number) {
        const array = this.outputArrays[number];
        outputs[number]?.set(count === CHUNK ? array : array.subarray(0, count), done);
      }
    }
  }

  /** The outputs that are not sound, of the pulse that has run. */
  frames() {
    const { instance } = this;
    return this.outputs.flatMap((port, number) => {
      if (number === this.soundOutput || port.axis < 0) return [];
      const count = instance.call("valid", this.stream, number, this.countersAt);
      const first = new DataView(instance.memory.buffer).getUint32(this.countersAt, true);
      const data = instance.arrayAt(port, instance.call("blocks_output", this.blocks, number)).slice();
      return count ? [{ name: port.name, first, count, data }] : [];
    });
  }

  bypass(on) {
    this.instance.call("blocks_bypass", this.blocks, on ? 1 : 0);
  }

  reset() {
    this.instance.call("blocks_reset", this.blocks);
  }

  counters() {
    this.instance.call("blocks_counters", this.blocks, this.countersAt, this.countersAt + 8);
    const [badSamples, badPulses] = new Float64Array(this.instance.memory.buffer, this.countersAt, 2);
    return { badSamples, badPulses };
  }
}

const now = globalThis.performance?.now ? () => performance.now() : () => Date.now();

if (globalThis.AudioWorkletProcessor && globalThis.registerProcessor) {
  registerProcessor(
    "@NAME@",
    class extends AudioWorkletProcessor {
      static get parameterDescriptors() {
        return [{ name: "bypass", defaultValue: 0, minValue: 0, maxValue: 1, automationRate: "k-rate" }];
      }

      constructor({ processorOptions }) {
        super();
        const { module, weights } = processorOptions;
        const compiled = module instanceof WebAssembly.Module ? module : new WebAssembly.Module(module);
        this.sound = new Sound(compiled, sampleRate, 128, weights);
        this.channels = this.sound.inputArrays.map(() => undefined);
        this.isSound = this.sound.soundOutput >= 0;
        this.hasFrames = this.sound.outputs.length > (this.isSound ? 1 : 0);
        this.onPulse = this.hasFrames ? () => this.post() : undefined;
        this.counts = { blocks: 0, late: 0, lost: 0, longestMs: 0 };
        this.bypassed = false;
        this.stopped = false;
        this.port.onmessage = ({ data }) => this.answer(data);
        this.port.postMessage({ type: "ready", delay: this.sound.delay, rate: sampleRate });
      }

      answer({ type }) {
        if (type === "counters") this.port.postMessage({ type, ...this.counts, ...this.sound.counters() });
        if (type === "reset") this.sound.reset();
        if (type === "stop") this.stopped = true;
      }

      post() {
        for (const frames of this.sound.frames())
          this.port.postMessage({ type: "frames", ...frames }, [frames.data.buffer]);
      }

      process(inputs, outputs, { bypass }) {
        const start = now();
        const { counts, sound, channels } = this;
        let number = 0;
        for (let input = 0; input < sound.inputChannels.length; ++input)
          for (let channel = 0; channel < sound.inputChannels[input]; ++channel)
            channels[number++] = inputs[input]?.[channel];
        const frames = outputs[0]?.[0]?.length ?? channels.find((channel) => channel)?.length ?? 128;
        if (bypass[0] >= 0.5 !== this.bypassed) {
          this.bypassed = !this.bypassed;
          sound.bypass(this.bypassed);
        }
        sound.process(channels, this.isSound ? outputs[0] : undefined, frames, this.onPulse);
        if (this.next !== undefined && currentFrame > this.next) counts.lost += (currentFrame - this.next) / frames;
        this.next = currentFrame + frames;
        const tookMs = now() - start;
        ++counts.blocks;
        if (tookMs > (1000 * frames) / sampleRate) ++counts.late;
        if (tookMs > counts.longestMs) counts.longestMs = tookMs;
        return !this.stopped;
      }
    },
  );
}

/**
 * The node of the model in a graph of Web Audio: an input for each audio input of the model, one output. Each has the
 * model's channels; all inputs of a node have as many, so an input with fewer takes the first ones.
 */
export class PulseNode extends (globalThis.AudioWorkletNode ?? Object) {
  static async create(context, { module, weights } = {}) {
    const here = import.meta.url;
    const source = module ?? (await fetchBytes(new URL("module.wasm", here)));
    const compiled = source instanceof WebAssembly.Module ? source : await WebAssembly.compile(source);
    const instance = new Instance(compiled);
    const [inputs, outputs] = instance.channels();
    if (instance.hasExternalWeights) weights ??= await fetchBytes(new URL("@NAME@.weights", here));
    await context.audioWorklet.addModule(here);
    const node = new PulseNode(context, compiled, inputs, outputs, weights);
    await node.ready;
    return node;
  }

  constructor(context, module, inputs, outputs, weights) {
    const channelCount = Math.max(...inputs);
    super(context, "@NAME@", {
      numberOfInputs: inputs.length,
      numberOfOutputs: 1,
      outputChannelCount: [outputs],
      channelCount,
      channelCountMode: "explicit",
      channelInterpretation: channelCount > 2 ? "discrete" : "speakers",
      processorOptions: { module, weights },
    });
    this.delay = 0;
    this.onframes = null;
    this.counterRequests = [];
    this.ready = new Promise((resolve, reject) => {
      this.resolveReady = resolve;
      this.onprocessorerror = () =>
        reject(new Error("@NAME@: the audio thread could not start the model; its console says why"));
    });
    this.port.onmessage = ({ data }) => this.hear(data);
  }

  hear(data) {
    if (data.type === "ready") {
      this.delay = data.delay;
      this.resolveReady();
    }
    if (data.type === "frames") this.onframes?.(data);
    if (data.type === "counters") this.counterRequests.shift()?.(data);
  }

  get delaySeconds() {
    return this.delay / this.context.sampleRate;
  }

  get bypass() {
    return this.parameters.get("bypass");
  }

  counters() {
    return new Promise((resolve) => {
      this.counterRequests.push(resolve);
      this.port.postMessage({ type: "counters" });
    });
  }

  reset() {
    this.port.postMessage({ type: "reset" });
  }

  stop() {
    this.port.postMessage({ type: "stop" });
    this.disconnect();
  }
}

async function fetchBytes(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${answer.statusText}`);
  return answer.arrayBuffer();
}
