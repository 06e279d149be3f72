// Types of worklet.js; pulse @VERSION@ wrote it.

export interface Port {
  readonly name: string;
  readonly dtype: string;
  readonly isOutput: boolean;
  /** Of one pulse; elements are C-contiguous. */
  readonly dims: readonly number[];
  readonly bytes: number;
  /** Of time; -1: the port does not stream. */
  readonly axis: number;
  /** In each pulse. */
  readonly frames: number;
  /** Leading frames of an output that are not part of the result. */
  readonly delay: number;
  /** Frames per second; 0: not known. */
  readonly rate: number;
}

export type Elements =
  | Float32Array
  | Float64Array
  | Int8Array
  | Int16Array
  | Int32Array
  | BigInt64Array
  | Uint8Array
  | Uint16Array
  | Uint32Array
  | BigUint64Array;

/** A pulse of an output; `count` frames of it are of the result, from frame `first` on. */
export interface Frames {
  readonly name: string;
  readonly first: number;
  readonly count: number;
  readonly data: Elements;
}

export interface Counters {
  /** Calls of process. */
  readonly blocks: number;
  /** Calls that took longer than their block lasts. */
  readonly late: number;
  /** Blocks that the browser left out. */
  readonly lost: number;
  readonly longestMs: number;
  /** Samples that were no number, and counted as 0. */
  readonly badSamples: number;
  /** Pulses without a result, which were silent. */
  readonly badPulses: number;
}

/** A stream of the model, pulse by pulse, anywhere: in a page, a worker or Node.js. Errors are thrown. */
export class Model {
  /** `weights`: the content of @NAME@.weights, of a model that was built with --external-weights. */
  constructor(module: WebAssembly.Module, weights?: ArrayBuffer);
  readonly ports: readonly Port[];
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  /** One pulse of each input, in the order of `inputs`. */
  step(inputs: readonly Elements[]): Frames[];
  /** Ends the stream with a rest that fills no pulse: `frames` of each input. */
  flush(rest?: readonly Elements[], frames?: readonly number[]): Generator<Frames[]>;
  /** Bytes as elements of a port. */
  elements(port: Port, buffer: ArrayBuffer): Elements;
  reset(): void;
  snapshot(): Uint8Array;
  restore(snapshot: Uint8Array): void;
}

/** Sound through the model, in blocks of any size and at any rate. */
export class Sound {
  constructor(module: WebAssembly.Module, rateHz: number, blockFrames?: number, weights?: ArrayBuffer);
  /** By how many frames the output is later than the input. */
  readonly delay: number;
  /** Channels of each input, and of the output. */
  readonly inputChannels: readonly number[];
  readonly outputChannels: number;
  /** An array for each channel: of all inputs, input by input, and of the output. */
  process(
    inputs: readonly (Float32Array | undefined)[],
    outputs: readonly (Float32Array | undefined)[] | undefined,
    frames: number,
    onPulse?: (sound: Sound) => void,
  ): void;
  /** The outputs that are not sound, of the pulse that has run; for `onPulse`. */
  frames(): Frames[];
  bypass(on: boolean): void;
  reset(): void;
  counters(): Pick<Counters, "badSamples" | "badPulses">;
}

/**
 * The node of the model: an input for each audio input of the model, and one output, with the model's channels. All
 * inputs of a node have the same number of channels, that of the largest; an input with fewer takes the first ones.
 */
export class PulseNode extends AudioWorkletNode {
  /** `module`: module.wasm, compiled or as bytes; `weights`: external ones; by default the files beside worklet.js. */
  static create(
    context: BaseAudioContext,
    options?: { module?: WebAssembly.Module | ArrayBuffer; weights?: ArrayBuffer },
  ): Promise<PulseNode>;
  /** By how many frames of the context the output is later than the input. */
  readonly delay: number;
  readonly delaySeconds: number;
  /** 1: the sound as it came, just as late. */
  readonly bypass: AudioParam;
  /** Outputs that are not sound, such as probabilities, as they are made. */
  onframes: ((frames: Frames) => void) | null;
  counters(): Promise<Counters>;
  reset(): void;
  /** Ends the stream and frees the processor. */
  stop(): void;
}
