// The pictures: sounds that move to the left, outputs that are not sound, the parts of the delay.

import { valuesInFrame } from "./client.js";
import { $ } from "./elements.js";

const SHOWN_S = 8; // of sound in the pictures
export const HISTORY_S = 60; // of delay

let waveform = false;

/** Show audio as waveforms, or as spectrograms. */
export function showWaveform(on) {
  waveform = on;
}

/** The colours of the scheme, read again when it changes. */
let colours = null;
export function readColours() {
  const style = getComputedStyle(document.documentElement);
  const colourOf = (name) => style.getPropertyValue(`--${name}`).trim();
  const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const stops = [0, 1, 2, 3].map((n) => rgb(colourOf(`scope-${n}`)));
  const ramp = Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * 3;
    const low = Math.min(2, Math.floor(at));
    const part = at - low;
    return stops[low].map((value, c) => Math.round(value + part * (stops[low + 1][c] - value)));
  });
  colours = {
    colourOf,
    ramp,
    ink: colourOf("ink"),
    soft: colourOf("soft"),
    line: colourOf("line"),
    card: colourOf("scope-0"),
  };
}

/** Give a canvas the pixels of the screen; returns its context. */
function fitCanvas(canvas) {
  const scale = devicePixelRatio || 1;
  const width = Math.round(canvas.clientWidth * scale);
  const height = Math.round(canvas.clientHeight * scale);
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  return canvas.getContext("2d");
}

/** The last seconds of audio, as a spectrogram or a waveform that moves to the left. */
export class Scope {
  constructor(canvas, analyser) {
    this.canvas = canvas;
    this.analyser = analyser;
    this.spectrum = new Float32Array(analyser.frequencyBinCount);
    this.wave = new Float32Array(2048);
    this.before = performance.now();
    this.owedColumns = 0; // with a part of one
    this.clear();
  }

  clear() {
    const context = fitCanvas(this.canvas);
    context.fillStyle = colours.card;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
  }

  draw(now) {
    const { canvas } = this;
    const { width, height } = canvas;
    if (canvas.width !== Math.round(canvas.clientWidth * (devicePixelRatio || 1))) this.clear();
    this.owedColumns += ((now - this.before) / 1000) * (width / SHOWN_S);
    this.before = now;
    const columns = Math.min(width, Math.floor(this.owedColumns));
    if (columns < 1) return;
    this.owedColumns -= columns;
    const context = canvas.getContext("2d");
    context.drawImage(canvas, columns, 0, width - columns, height, 0, 0, width - columns, height);
    if (waveform) this.drawWave(context, columns);
    else this.drawSpectrum(context, columns);
  }

  drawSpectrum(context, columns) {
    const { width, height } = this.canvas;
    this.analyser.getFloatFrequencyData(this.spectrum);
    const image = context.createImageData(columns, height);
    for (let y = 0; y < height; y++) {
      const bin = Math.floor(((height - 1 - y) / height) * this.spectrum.length);
      const level = Math.round(255 * Math.max(0, Math.min(1, (this.spectrum[bin] + 98) / 76)));
      const [r, g, b] = colours.ramp[level];
      for (let x = 0; x < columns; x++) image.data.set([r, g, b, 255], 4 * (y * columns + x));
    }
    context.putImageData(image, width - columns, 0);
  }

  drawWave(context, columns) {
    const { width, height } = this.canvas;
    this.analyser.getFloatTimeDomainData(this.wave.subarray(0, this.analyser.fftSize));
    let top = 0;
    for (let i = 0; i < this.analyser.fftSize; i++) top = Math.max(top, Math.abs(this.wave[i]));
    const half = Math.max(0.5, (Math.min(1, top) * height) / 2);
    context.fillStyle = colours.card;
    context.fillRect(width - columns, 0, columns, height);
    context.fillStyle = colours.colourOf("accent");
    context.fillRect(width - columns, height / 2 - half, columns, 2 * half);
  }
}

export function labelScopes(rate) {
  for (const id of ["scope-in", "scope-out"]) {
    const box = $(id).parentElement;
    box.querySelectorAll(".tick").forEach((tick) => tick.remove());
    if (waveform) continue;
    for (const part of [1 / 4, 1 / 2, 3 / 4]) {
      const tick = document.createElement("span");
      tick.className = "tick";
      tick.textContent = `${((rate / 2) * part) / 1000} kHz`;
      tick.style.bottom = `calc(${part * 100}% - 0.35rem)`;
      tick.setAttribute("aria-hidden", "true");
      box.append(tick);
    }
  }
}

/** Values of outputs that are not sound: kept for the picture, by output. */
export function takeFrames(run, { name, kind, first, frames, values }) {
  const port = run.model.outputs.find((output) => output.name === name);
  if (kind === "final") {
    $("frames-legend").textContent =
      `${name}: ${Array.from(values.slice(0, 8), (value) => Number(value).toPrecision(3)).join(", ")}`;
    return;
  }
  const width = valuesInFrame(port);
  const history = run.frames.get(name) ?? { rows: [], width, rate: port.rate };
  run.frames.set(name, history);
  for (let n = 0; n < frames; n++) history.rows.push([first + n, values.slice(n * width, (n + 1) * width)]);
  history.rows.splice(0, Math.max(0, history.rows.length - Math.ceil(SHOWN_S * port.rate)));
}

const MAX_LINES = 6;

export function drawFrames(run) {
  const canvas = $("scope-frames");
  const context = fitCanvas(canvas);
  const { width, height } = canvas;
  context.fillStyle = colours.card;
  context.fillRect(0, 0, width, height);
  const all = [...run.frames.entries()];
  if (!all.length) return;
  const wide = all.find(([, { width: values }]) => values > MAX_LINES);
  if (wide) {
    drawHeat(context, wide[1]);
    return;
  }
  const lines = all
    .flatMap(([name, history]) =>
      Array.from({ length: history.width }, (_, n) => ({
        history,
        n,
        label: history.width > 1 ? `${name} ${n}` : name,
      })),
    )
    .slice(0, MAX_LINES);
  let low = 0;
  let high = 1;
  for (const { history, n } of lines)
    for (const [, row] of history.rows) {
      low = Math.min(low, Number(row[n]));
      high = Math.max(high, Number(row[n]));
    }
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  for (const part of [0.25, 0.5, 0.75]) {
    context.beginPath();
    context.moveTo(0, height * part);
    context.lineTo(width, height * part);
    context.stroke();
  }
  context.lineWidth = 2 * (devicePixelRatio || 1);
  lines.forEach(({ history, n }, place) => {
    const last = history.rows.at(-1)[0];
    const count = SHOWN_S * history.rate;
    context.strokeStyle = colours.colourOf(`trace-${place}`);
    context.beginPath();
    for (const [frame, row] of history.rows)
      context.lineTo(
        width * (1 - (last - frame) / count),
        height - 3 - ((Number(row[n]) - low) / (high - low)) * (height - 6),
      );
    context.stroke();
  });
  $("frames-legend").textContent = lines
    .map(({ history, n, label }) => `${label} ${Number(history.rows.at(-1)[1][n]).toFixed(2)}`)
    .join("  ");
}

function drawHeat(context, { rows, width: values, rate }) {
  const { width, height } = context.canvas;
  const count = Math.ceil(SHOWN_S * rate);
  let low = Infinity;
  let high = -Infinity;
  for (const [, row] of rows)
    for (const value of row) {
      low = Math.min(low, Number(value));
      high = Math.max(high, Number(value));
    }
  const column = Math.max(1, width / count);
  const last = rows.at(-1)[0];
  const cell = height / values;
  for (const [frame, row] of rows) {
    const x = width * (1 - (last + 1 - frame) / count);
    for (let n = 0; n < values; n++) {
      const [r, g, b] = colours.ramp[Math.round((255 * (Number(row[n]) - low)) / (high - low || 1))];
      context.fillStyle = `rgb(${r},${g},${b})`;
      context.fillRect(x, height - (n + 1) * cell, column + 1, cell + 1);
    }
  }
}

const PARTS = ["model", "network", "queue", "step", "playout"];

export function drawDelay(run) {
  const canvas = $("delay");
  const context = fitCanvas(canvas);
  const { width, height } = canvas;
  const scale = devicePixelRatio || 1;
  context.clearRect(0, 0, width, height);
  const now = performance.now();
  const { history } = run;
  const topMs = Math.max(20, ...history.map((parts) => PARTS.reduce((sum, part) => sum + parts[part], 0))) * 1.1;
  const unit = [5, 10, 20, 50, 100, 200, 500, 1000, 2000].find((step) => topMs / step <= 4.5) ?? 5000;
  const margin = 34 * scale; // for the milliseconds
  const y = (ms) => height - 1 - (ms / topMs) * (height - 8 * scale);
  const x = (at) => width - ((now - at) / (HISTORY_S * 1000)) * (width - margin);
  if (history.length > 1) {
    const base = new Float64Array(history.length);
    for (const part of PARTS) {
      context.beginPath();
      history.forEach((parts, i) => context.lineTo(x(parts.at), y(base[i] + parts[part])));
      for (let i = history.length - 1; i >= 0; i--) context.lineTo(x(history[i].at), y(base[i]));
      context.fillStyle = colours.colourOf(`part-${part}`);
      context.fill();
      history.forEach((parts, i) => {
        base[i] += parts[part];
      });
    }
  }
  context.font = `${11 * scale}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (let ms = 0; ms < topMs; ms += unit) {
    context.fillStyle = colours.line;
    context.globalAlpha = 0.6;
    context.fillRect(margin, y(ms), width - margin, scale);
    context.globalAlpha = 1;
    context.fillStyle = colours.soft;
    context.fillText(ms, margin - 6 * scale, Math.min(height - 6 * scale, y(ms)));
  }
}
