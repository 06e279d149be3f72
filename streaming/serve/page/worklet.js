// In the audio thread: cuts the input into blocks, and plays what comes back, each sample with the same delay.

/** Changes a rate of samples: a windowed sinc, aligned in time, so that output n is at n / to seconds. */
class Resampler {
  constructor(from, to) {
    this.ratio = from / to;
    this.cutoff = Math.min(1, to / from) * 0.94;
    this.half = Math.ceil(20 / this.cutoff);
    this.past = new Float32Array(this.half); // before the first sample is silence
    this.begin = -this.half; // input frame of past[0]
    this.count = 0; // output frames so far
    this.steps = 256; // points of the kernel between two samples
    this.kernel = new Float32Array(this.half * this.steps + 2);
    for (let i = 0; i < this.kernel.length; i++) {
      const t = i / this.steps;
      const x = Math.PI * t * this.cutoff;
      const w = Math.min(1, t / this.half);
      const window = 0.42 + 0.5 * Math.cos(Math.PI * w) + 0.08 * Math.cos(2 * Math.PI * w);
      this.kernel[i] = this.cutoff * (x === 0 ? 1 : Math.sin(x) / x) * window;
    }
  }

  push(samples) {
    const joined = new Float32Array(this.past.length + samples.length);
    joined.set(this.past);
    joined.set(samples, this.past.length);
    const end = this.begin + joined.length;
    const ready = Math.max(0, Math.ceil((end - this.half) / this.ratio) - this.count);
    const result = new Float32Array(ready);
    for (let n = 0; n < ready; n++) {
      const t = (this.count + n) * this.ratio;
      const first = Math.ceil(t - this.half);
      const last = Math.floor(t + this.half);
      let sum = 0;
      for (let k = Math.max(first, this.begin); k <= last && k < end; k++) {
        const at = Math.abs(t - k) * this.steps;
        const low = Math.floor(at);
        sum += joined[k - this.begin] * (this.kernel[low] + (at - low) * (this.kernel[low + 1] - this.kernel[low]));
      }
      result[n] = sum;
    }
    this.count += ready;
    const keep = Math.max(0, Math.floor(this.count * this.ratio) - this.half - this.begin);
    this.past = joined.slice(keep);
    this.begin += keep;
    return result;
  }

  /** What waits for samples after the end, which are silence. */
  flush() {
    return this.push(new Float32Array(this.half));
  }
}

/** The last samples of a stream, by their numbers. */
class Ring {
  constructor(size) {
    this.samples = new Float32Array(size);
    this.end = 0;
  }
  write(samples, first = this.end) {
    for (let i = 0; i < samples.length; i++) this.samples[(first + i) % this.samples.length] = samples[i];
    this.end = first + samples.length;
  }
  at(n) {
    return n >= 0 && n < this.end && n >= this.end - this.samples.length ? this.samples[n % this.samples.length] : 0;
  }
}

const PERIOD_S = 10; // for which the slowest answer counts
const MIN_BLOCKS = 2; // between arrival and playing
const FIRST_BLOCKS = 4; // more than that at first, until it is known how steady the answers are
const FADE = 128;

/** How late all is played: as little as the answers of the last seconds allow, at least two blocks after them. */
class Delay {
  constructor(block) {
    this.block = block;
    this.frames = null; // the delay; null until the first answer
    this.answers = []; // [frame, how long after its sample's own time an answer came], of the last seconds
    this.calm = 0; // the frame since which the delay could be smaller
  }
  /** The delay that the answers of the last seconds ask for. */
  get targetFrames() {
    let shortest = Infinity;
    let longest = 0;
    for (const [, latency] of this.answers) {
      shortest = Math.min(shortest, latency);
      longest = Math.max(longest, latency);
    }
    return Math.ceil(Math.max(shortest + MIN_BLOCKS * this.block, longest + this.block / 2 + FADE) / FADE) * FADE;
  }
  addAnswer(now, first) {
    this.answers.push([now, now - first]);
    while (this.answers[0][0] < now - PERIOD_S * sampleRate) this.answers.shift();
    if (this.frames === null) {
      this.frames = this.targetFrames + FIRST_BLOCKS * this.block;
      this.calm = now;
    }
  }
  /** Whether it is time to play earlier, by how things went lately. */
  mayFall(now) {
    if (this.frames === null || this.targetFrames > this.frames - this.block) this.calm = now;
    return now - this.calm > (PERIOD_S / 2) * sampleRate;
  }
}

class Stream extends AudioWorkletProcessor {
  constructor({ processorOptions: { modelRate, outRate, block } }) {
    super();
    this.block = block; // frames of the model in a message
    this.outRate = outRate || sampleRate;
    this.into = modelRate === sampleRate ? null : new Resampler(sampleRate, modelRate);
    this.from = outRate && outRate !== sampleRate ? new Resampler(outRate, sampleRate) : null;
    this.inputRing = new Ring(8 * sampleRate);
    this.outputRing = new Ring(16 * sampleRate);
    this.delay = new Delay(Math.round((block / modelRate) * sampleRate));
    this.waiting = new Float32Array(0);
    this.start = null;
    this.end = null;
    this.total = null;
    this.finished = false;
    this.late = 0;
    this.missed = false;
    this.since = 0;
    this.bypass = false;
    this.mix = 0;
    this.record = false;
    this.taken = [];
    this.figures = emptyFigures();
    this.port.onmessage = ({ data }) => this.takeMessage(data);
  }

  takeMessage(message) {
    if (message.wire) {
      this.wire = message.wire;
      this.wire.onmessage = ({ data }) => this.takeAnswer(data);
    }
    if (message.start !== undefined) {
      this.start = message.start ?? currentFrame;
      this.end = message.end ?? null;
    }
    if (message.stop) {
      this.end = currentFrame;
      this.record = false;
    }
    if (message.bypass !== undefined) this.bypass = message.bypass;
    if (message.record !== undefined) this.record = message.record;
  }

  /** Output frames of the model with their number, how many there are at the end, or when others have come. */
  takeAnswer({ first, samples, total, arrived }) {
    if (arrived !== undefined) {
      this.figures.latency = currentFrame - this.start - arrived * sampleRate;
      return;
    }
    if (total !== undefined) {
      if (this.from) this.outputRing.write(this.from.flush());
      this.total = Math.min(this.outputRing.end, Math.ceil((total * sampleRate) / this.outRate));
      return;
    }
    if (this.from) samples = this.from.push(samples);
    const at = this.outputRing.end;
    this.outputRing.write(samples, this.from ? at : first);
    this.delay.addAnswer(currentFrame - this.start, at);
    this.figures.latency = currentFrame - this.start - at;
  }

  capture(input, length) {
    const samples = new Float32Array(length);
    for (const channel of input) for (let i = 0; i < length; i++) samples[i] += channel[i] / input.length;
    const now = currentFrame;
    const from = Math.max(0, this.start - now);
    const to = this.end === null ? length : Math.min(length, this.end - now);
    if (to > from) {
      const part = samples.subarray(from, to);
      this.inputRing.write(part);
      this.send(this.into ? this.into.push(part) : part);
    }
    if (this.end !== null && now + length >= this.end && !this.finished) {
      this.finished = true;
      if (this.into) this.send(this.into.flush());
      this.wire.postMessage({ samples: this.waiting });
      this.wire.postMessage({ finish: true });
      this.waiting = new Float32Array(0);
    }
    return samples;
  }

  send(samples) {
    const joined = new Float32Array(this.waiting.length + samples.length);
    joined.set(this.waiting);
    joined.set(samples, this.waiting.length);
    let at = 0;
    for (; at + this.block <= joined.length; at += this.block) {
      const samples = joined.slice(at, at + this.block);
      this.wire.postMessage({ samples }, [samples.buffer]);
    }
    this.waiting = joined.slice(at);
  }

  play(output) {
    const length = output.length;
    const delay = this.delay;
    if (delay.frames === null) return this.total !== null;
    const first = currentFrame - this.start - delay.frames;
    const ended = this.total !== null && first >= this.total;
    const known = this.total ?? Infinity;
    const here = Math.max(0, Math.min(length, this.outputRing.end - first));
    const due = Math.max(0, Math.min(length, known - first));
    for (let i = 0; i < length; i++) output[i] = this.outputRing.at(first + i);
    if (first + length > 0 && here < due) {
      this.late += due - Math.max(here, -first);
      for (let i = 0; i < length; i++) output[i] *= here ? Math.max(0, 1 - i / here) : 0;
      this.missed = true;
      this.since = currentFrame + length - this.start;
    } else if (this.missed) {
      // The answers came after their time: play all later, and fade in.
      delay.frames = Math.max(delay.targetFrames, delay.frames);
      this.missed = false;
      this.since = currentFrame + length - this.start;
      const again = currentFrame - this.start - delay.frames;
      for (let i = 0; i < length; i++) output[i] = (this.outputRing.at(again + i) * i) / length;
    } else if (delay.mayFall(currentFrame - this.start)) {
      const before = delay.frames;
      delay.frames = delay.targetFrames;
      this.since = before + first + length; // from here on this delay holds
      delay.calm = currentFrame - this.start;
      for (let i = 0; i < length; i++) {
        const a = i / length;
        output[i] = (1 - a) * output[i] + a * this.outputRing.at(first + before - delay.frames + i);
      }
    }
    const goal = this.bypass ? 1 : 0;
    if (this.mix !== goal || goal) {
      const at = currentFrame - this.start - delay.frames;
      for (let i = 0; i < length; i++) {
        const a = this.mix + ((goal - this.mix) * (i + 1)) / length;
        output[i] = (1 - a) * output[i] + a * this.inputRing.at(at + i);
      }
      this.mix = goal;
    }
    return ended;
  }

  measure(input, output) {
    const f = this.figures;
    for (let i = 0; i < input.length; i++) {
      f.inPeak = Math.max(f.inPeak, Math.abs(input[i]));
      f.inPower += input[i] * input[i];
      f.outPeak = Math.max(f.outPeak, Math.abs(output[i]));
      f.outPower += output[i] * output[i];
    }
    f.frames += input.length;
    if (f.frames < sampleRate / 20) return;
    const { frames } = this.delay;
    this.port.postMessage({
      figures: { ...f, delay: frames, late: this.late, since: this.since, now: currentFrame - this.start },
    });
    this.figures = { ...emptyFigures(), latency: f.latency };
  }

  process([input], [[output]]) {
    if (this.start === null || !this.wire || currentFrame + output.length <= this.start) return true;
    const samples = this.capture(input, output.length);
    const ended = this.play(output);
    this.measure(samples, output);
    if (this.record) {
      const from = Math.max(0, this.start - currentFrame);
      this.taken.push(samples.slice(from), output.slice(from));
    }
    if (this.taken.length >= 64 || (this.taken.length && (ended || !this.record))) {
      this.port.postMessage({ recorded: this.taken.splice(0), delay: this.delay.frames, since: this.since });
    }
    if (ended) this.port.postMessage({ ended });
    return !ended;
  }
}

const emptyFigures = () => ({ frames: 0, inPeak: 0, inPower: 0, outPeak: 0, outPower: 0, latency: null });

registerProcessor("pulse-stream", Stream);
