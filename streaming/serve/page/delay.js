// The delay of a run and its parts, in numbers.

import { $, isPressed } from "./elements.js";
import { HISTORY_S } from "./pictures.js";
import { showLevel } from "./readings.js";

export function takeFigures(run, figures) {
  const ms = 1000 / run.context.sampleRate;
  showLevel("level-in", figures.inPeak, figures.inPower / figures.frames);
  showLevel("level-out", figures.outPeak, figures.outPower / figures.frames);
  const latency = figures.latency === null ? null : figures.latency * ms;
  const total = figures.delay === null ? latency : figures.delay * ms;
  if (latency === null) return;
  let rest = latency;
  const part = (longest) => {
    const share = Math.min(rest, longest ?? 0);
    rest -= share;
    return share;
  };
  const step = part(run.step_us / 1000);
  const queue = part(run.queue_us / 1000);
  const network = part(run.network_ms);
  const model = rest;
  const playout = Math.max(0, total - latency);
  run.queue_us = 0;
  run.step_us = 0;
  Object.assign(run, { delay: figures.delay, since: figures.since, now: figures.now });
  run.history.push({ at: performance.now(), model, network, queue, step, playout });
  while (run.history[0].at < performance.now() - HISTORY_S * 1000) run.history.shift();
  if (performance.now() - (run.delayShownAt ?? 0) < 500) return;
  run.delayShownAt = performance.now();
  showDelay(run, total, figures.late);
}

const milliseconds = (value) => (value === 0 ? "–" : value < 1 ? `${value.toFixed(2)} ms` : `${value.toFixed(1)} ms`);

function showDelay(run, total, late) {
  const recent = run.history.slice(-20);
  const median = (part) => recent.map((parts) => parts[part]).sort((a, b) => a - b)[Math.floor(recent.length / 2)];
  $("delay-total").replaceChildren(
    total.toFixed(1),
    Object.assign(document.createElement("small"), { textContent: " ms" }),
  );
  const forPrograms = { samples: run.delay ?? "", since: run.since, now: run.now, rate: run.context.sampleRate };
  Object.assign($("delay-total").dataset, forPrograms);
  for (const part of ["playout", "step", "queue", "network", "model"])
    $(`part-${part}`).textContent = milliseconds(median(part));
  $("late").textContent = run.delay === null ? "–" : `${late.toLocaleString("en")} samples`;
  const device = (run.context.outputLatency || run.context.baseLatency || 0) * 1000;
  $("device").textContent = run.delay === null ? "–" : device ? `+ ${device.toFixed(0)} ms` : "not reported";
  $("out-note").textContent =
    run.delay === null
      ? ""
      : `${isPressed("bypass") ? "bypass: the input" : "the model"}, ${total.toFixed(0)} ms after the input`;
}
