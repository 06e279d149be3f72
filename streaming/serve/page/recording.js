// A recording, input and output on one clock: its file, input left and output right, and what the page says of it.

import { $ } from "./elements.js";

const MAX_RECORDED_S = 600; // longer ones end

/** Parts of two sides, left and right in turn, as one recording of two channels. */
function interleave(parts) {
  const sides = [0, 1].map((side) => parts.filter((_, i) => i % 2 === side));
  const joined = new Float32Array(2 * sides[0].reduce((sum, part) => sum + part.length, 0));
  sides.forEach((side, channel) => {
    let at = channel;
    for (const part of side)
      for (const value of part) {
        joined[at] = value;
        at += 2;
      }
  });
  return joined;
}

/** Samples of interleaved channels as a WAV file of 32-bit floats. */
function wav(samples, channels, rate) {
  const view = new DataView(new ArrayBuffer(44));
  const word = (at, text) => [...text].forEach((letter, i) => view.setUint8(at + i, letter.charCodeAt(0)));
  word(0, "RIFF");
  view.setUint32(4, 36 + samples.byteLength, true);
  word(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 3, true);
  view.setUint16(22, channels, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, rate * channels * 4, true);
  view.setUint16(32, channels * 4, true);
  view.setUint16(34, 32, true);
  word(36, "data");
  view.setUint32(40, samples.byteLength, true);
  return new Blob([view, samples], { type: "audio/wav" });
}

const recordedSeconds = (run) => run.recordedFrames / run.context.sampleRate;

export const isTooLong = (run) => recordedSeconds(run) > MAX_RECORDED_S;

export function showRecording(run) {
  $("recording").hidden = false;
  $("recording").textContent = `Recording, ${recordedSeconds(run).toFixed(0)} s: input left, output right`;
}

export function saveRecording(run) {
  const parts = run.recorded.flat();
  run.recorded = null;
  const sound = interleave(parts);
  const frames = sound.length / 2;
  if (!frames) return;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(wav(sound, 2, run.context.sampleRate));
  link.download = `${run.model.name}-delay-${run.delay ?? 0}-samples.wav`;
  Object.assign(link.dataset, { samples: run.delay ?? "", since: run.since ?? 0 }); // the delay, and its first frame
  link.textContent = `Save ${link.download}`;
  $("recording").hidden = false;
  $("recording").replaceChildren(link, ` ${(frames / run.context.sampleRate).toFixed(1)} s, input left, output right`);
}
