// What a run shows in numbers and words: levels and events.

import { $ } from "./elements.js";

const MAX_EVENTS = 200;
const decibels = (value) => 20 * Math.log10(Math.max(value, 1e-6));

export function showLevel(id, peak, power) {
  const level = $(id);
  const [track, number] = [level.children[1], level.children[2]];
  const rms = decibels(Math.sqrt(power));
  const top = decibels(peak);
  const part = (db) => Math.max(0, Math.min(1, (db + 60) / 60));
  track.children[0].style.transform = `scaleX(${part(rms)})`;
  track.children[1].style.left = `calc(${part(top) * 100}% - 2px)`;
  level.classList.toggle("clipped", peak >= 1);
  const now = performance.now();
  if (now - (level.shownAt ?? 0) < 400) return;
  level.shownAt = now;
  number.textContent = rms < -90 ? "silent" : `${rms.toFixed(0)} dB`;
  track.setAttribute("aria-valuenow", Math.round(Math.max(-60, Math.min(0, rms))));
  track.setAttribute("aria-valuetext", number.textContent);
}

export function showEvent(run, { start, end, label, score, output }) {
  const kind = run.model.events.find((detector) => detector.output === output)?.kind;
  if (kind === "ctc") {
    $("text").append(`${label} `);
    return;
  }
  const key = `${output} ${start}`;
  const old = [...$("events").children].find((row) => row.dataset.key === key && row.dataset.open);
  const item = old ?? document.createElement("li");
  const seconds = (frame) => (frame / run.model.rate).toFixed(2);
  const time = document.createElement("time");
  time.textContent = `${seconds(start)} s`;
  const what = document.createElement("span");
  what.textContent = end === null ? `${label} …` : `${label}, ${((end - start) / run.model.rate).toFixed(2)} s`;
  const sure = document.createElement("span");
  sure.className = "number";
  sure.textContent = score === null || score === undefined ? "" : score.toFixed(2);
  item.replaceChildren(time, what, sure);
  item.dataset.key = key;
  if (end === null) item.dataset.open = "yes";
  else delete item.dataset.open;
  if (!old) $("events").prepend(item);
  while ($("events").children.length > MAX_EVENTS) $("events").lastChild.remove();
  $("no-events").hidden = true;
}
