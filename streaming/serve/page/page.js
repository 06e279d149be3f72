// The page: the choice of a model, start and stop, status and errors, the numbers, the controls.

import { listModels, StreamError } from "./client.js";
import { drawDelay, drawFrames, HISTORY_S, labelScopes, readColours, Scope, showWaveform, takeFrames } from "./pictures.js";
import { showEvent, showLevel } from "./readings.js";
import { interleave, wav } from "./recording.js";

const $ = (id) => document.getElementById(id);
const BLOCK_S = 0.01;
const MIN_RATE_HZ = 3000; // of sound that a browser plays
const MAX_RECORDED_S = 600;
const calmer = matchMedia("(prefers-reduced-motion: reduce)");
const base = new URL("./", location.href);

let models = [];
let run = null; // the present run: context, nodes, worker, figures

// ---- The choice of a model

async function showModels() {
  try {
    models = await listModels(base, $("token").value);
    sessionStorage.setItem("token", $("token").value);
    showError(null);
  } catch (error) {
    models = [];
    $("token-setting").hidden = error.code !== "token";
    if (error.code === "token" && !$("token").value) $("token").focus();
    else showError(error);
    $("model-note").textContent = error.code === "token" ? "The server asks for a token." : "";
  }
  const before = $("model").value || new URLSearchParams(location.search).get("model");
  $("model").replaceChildren(...models.map((model) => {
    const option = new Option(model.title && model.title !== model.name ? `${model.name}: ${model.title}` : model.name, model.name);
    option.disabled = Boolean(reasonAgainst(model));
    return option;
  }));
  const first = models.find((model) => model.name === before && !reasonAgainst(model)) ?? models.find((model) => !reasonAgainst(model));
  if (first) $("model").value = first.name;
  $("model").disabled = !first;
  $("start").disabled = !first;
  describeModel();
}

/** Why the page cannot run a model; empty if it can. */
function reasonAgainst(model) {
  if (model.inputs.length !== 1) return `it has ${model.inputs.length} inputs`;
  if (model.inputs[0].kind !== "sound") return "its input is not sound";
  if (!model.rate) return "its rate is not known";
  return "";
}

/** Whether a model shall run here: `web` is the folder of its WebAssembly form, if the server has one. */
const isInPage = (model) => Boolean(model.web) && choiceOf("place") === "page";

const selectedModel = () => models.find((model) => model.name === $("model").value);
/** The output that is played: sound, and not one value in each of some longer frames. */
const soundOutput = (model) => model.outputs.find(({ kind, rate }) => kind === "sound" && rate >= MIN_RATE_HZ);

function describeModel() {
  const model = selectedModel();
  if (!model) {
    if (models.length) $("model-note").textContent = `No model here takes one sound: ${models.map((m) => `${m.name}, ${reasonAgainst(m)}`).join("; ")}.`;
    return;
  }
  const ms = ((model.pulse / model.rate) * 1000).toFixed(0);
  $("model-note").textContent = `${model.rate / 1000} kHz, pulses of ${ms} ms`;
  $("place-setting").hidden = !model.web;
  for (const id of ["out-card", "level-out", "volume-setting"]) $(id).hidden = !soundOutput(model);
  for (const id of ["bypass", "mute"]) $(id).disabled = !soundOutput(model);
  const frames = model.outputs.filter((output) => output !== soundOutput(model) && output.kind !== "final");
  $("frames-card").hidden = !frames.length;
  $("frames-title").textContent = frames.map((output) => output.name).join(", ");
  $("text").hidden = !model.events.some(({ kind }) => kind === "ctc");
  $("events-card").hidden = !model.events.length;
}

// ---- Start and stop

async function start() {
  showError(null);
  const model = selectedModel(), source = choiceOf("source");
  setStatus("waiting", "Starting …");
  $("start").disabled = true;
  run = { model, source, history: [], frames: new Map(), closing: false, network_ms: 0, queue_us: 0, step_us: 0 };
  const mine = run;
  try {
    run.context = newContext(model.rate);
    const input = await openSource(mine);
    if (run !== mine) return;
    await connect(mine, input);
    if (run !== mine) return;
    navigator.wakeLock?.request("screen").then((lock) => { mine.lock = lock; }, () => {}); // a help, not a need
  } catch (error) {
    stop(toStreamError(error));
    return;
  }
  $("start").disabled = false;
  $("start").firstChild.data = "Stop";
  $("start").classList.add("running");
  document.body.classList.add("running");
  for (const each of document.querySelectorAll("#model, #microphone, #file, input[name=source], input[name=place]")) each.disabled = true;
}

/** A context at the model's rate, so that nothing is resampled twice; browsers that refuse the rate get their own. */
function newContext(rate) {
  try {
    return new AudioContext({ sampleRate: rate, latencyHint: "interactive" });
  } catch {
    return new AudioContext({ latencyHint: "interactive" });
  }
}

async function openSource(mine) {
  if (mine.source === "microphone") {
    if (!navigator.mediaDevices) {
      throw new StreamError("microphone", "This browser gives pages the microphone only over https, or from localhost.", "Start the server with a certificate, or choose a file.");
    }
    const device = $("microphone").value;
    const plain = { echoCancellation: false, noiseSuppression: false, autoGainControl: false, channelCount: 1 };
    mine.media = await navigator.mediaDevices.getUserMedia({ audio: { ...plain, ...(device && { deviceId: { exact: device } }) } });
    mine.media.getAudioTracks()[0].onended = () => run === mine && stop(new StreamError("microphone", "The microphone is gone."));
    listMicrophones();
    try {
      return mine.context.createMediaStreamSource(mine.media);
    } catch {
      mine.context.close(); // Firefox: the rates of microphone and context must agree
      mine.context = new AudioContext({ latencyHint: "interactive" });
      return mine.context.createMediaStreamSource(mine.media);
    }
  }
  const bytes = mine.source === "file" ? await $("file").files[0]?.arrayBuffer() : await example();
  if (!bytes) throw new StreamError("file", "No file is chosen.", "Choose a sound file.");
  const node = mine.context.createBufferSource();
  node.buffer = await mine.context.decodeAudioData(bytes).catch(() => {
    throw new StreamError("file", "This browser cannot read the file as sound.", "Try WAV, MP3 or FLAC.");
  });
  return node;
}

async function example() {
  const answer = await fetch(new URL("example.flac", base));
  if (!answer.ok) throw new StreamError("file", "The server has no example sound.", "Choose a file.");
  return answer.arrayBuffer();
}

async function connect(mine, input) {
  const { context, model } = mine, output = soundOutput(model);
  await context.audioWorklet.addModule(new URL("worklet.js", base));
  const block = Math.max(1, Math.round(BLOCK_S * model.rate));
  const node = new AudioWorkletNode(context, "pulse-stream", {
    numberOfInputs: 1, numberOfOutputs: 1, outputChannelCount: [1],
    processorOptions: { modelRate: model.rate, outRate: output?.rate, block },
  });
  node.onprocessorerror = () => stop(new StreamError("page", "The audio thread failed.", "Start again."));
  const gain = new GainNode(context, { gain: volume() });
  Object.assign(mine, {
    node, gain, input,
    inputAnalyser: new AnalyserNode(context, { fftSize: 512, smoothingTimeConstant: 0 }),
    outputAnalyser: new AnalyserNode(context, { fftSize: 512, smoothingTimeConstant: 0 }),
    block,
  });
  input.connect(node);
  input.connect(mine.inputAnalyser);
  node.connect(mine.outputAnalyser);
  node.connect(gain).connect(context.destination);
  mine.spectra = [new Scope($("scope-in"), mine.inputAnalyser), new Scope($("scope-out"), mine.outputAnalyser)];
  node.port.onmessage = ({ data }) => run === mine && fromAudio(mine, data);
  node.port.postMessage({ bypass: isPressed("bypass"), record: isPressed("record") });

  mine.worker = new Worker(new URL("worker.js", base), { type: "module" });
  mine.worker.onerror = (event) => run === mine && stop(new StreamError("page", event.message || "The page's worker failed.", "Load the page again."));
  mine.worker.onmessage = ({ data }) => run === mine && fromWorker(mine, data);
  const wire = new MessageChannel();
  const url = new URL("v1/stream", base);
  url.protocol = base.protocol === "https:" ? "wss:" : "ws:";
  const hello = { model: model.name, rate: model.rate, format: "f32", block, ...($("token").value && { token: $("token").value }) };
  node.port.postMessage({ wire: wire.port1 }, [wire.port1]);
  const open = isInPage(model)
    ? { folder: new URL(model.web, base).href, token: $("token").value, ports: { inputs: model.inputs, outputs: model.outputs } }
    : { client: new URL("client.js", base).href, url: url.href, hello };
  mine.worker.postMessage({ open: { ...open, output: output?.port }, port: wire.port2 }, [wire.port2]);
  context.onstatechange = () => {
    if (run !== mine || !mine.began) return;
    if (context.state === "running") setStatus("running", mine.words);
    else setStatus("waiting", "Paused by the browser");
  };
  await context.resume();
}

function begin(mine) {
  const { context, node, input } = mine;
  if (mine.source === "microphone") {
    node.port.postMessage({ start: null });
  } else {
    const first = Math.ceil((context.currentTime + 0.2) * context.sampleRate);
    node.port.postMessage({ start: first, end: first + input.buffer.length });
    input.start(first / context.sampleRate);
  }
  if (isPressed("record")) mine.recorded = [];
  mine.words = mine.source === "microphone" ? "Listening" : "Playing";
  setStatus("running", mine.words);
}

/** End the input; the rest of the output and the last events still come. */
function finish() {
  if (!run?.began) return stop();
  run.closing = true;
  setStatus("waiting", "Ending …");
  run.node.port.postMessage({ stop: true });
  setTimeout((mine) => run === mine && stop(), 2000, run);
  return undefined;
}

function stop(error = null) {
  const mine = run;
  run = null;
  if (mine) {
    mine.media?.getTracks().forEach((track) => { track.onended = null; track.stop(); });
    mine.worker?.postMessage({ close: true });
    if (mine.context?.state !== "closed") mine.context?.close();
    mine.lock?.release();
    if (mine.recorded) save(mine);
  }
  $("start").firstChild.data = "Start";
  $("start").classList.remove("running");
  document.body.classList.remove("running");
  $("start").disabled = !selectedModel();
  for (const each of document.querySelectorAll("#microphone, #file, input[name=source], input[name=place]")) each.disabled = false;
  $("model").disabled = !models.length;
  for (const id of ["level-in", "level-out"]) { $(id).shownAt = 0; showLevel(id, 0, 0); }
  showError(error);
  setStatus(error ? "failed" : "idle", error ? "Stopped by an error" : "Ready");
}

// ---- Messages of the audio thread and the worker

function fromAudio(mine, { figures, recorded, delay, since, ended }) {
  if (recorded && mine.recorded) {
    mine.recorded.push(recorded);
    Object.assign(mine, { delay, since });
    mine.recordedFrames = (mine.recordedFrames ?? 0) + recorded.reduce((sum, part, i) => sum + (i % 2 ? 0 : part.length), 0);
    showRecording(mine);
  }
  if (figures) takeFigures(mine, figures);
  if (ended && mine.began) stop();
}

function fromWorker(mine, data) {
  if (data.failed) stop(new StreamError(data.failed.code, data.failed.message, data.failed.hint));
  if (data.ready) { mine.began = true; begin(mine); }
  if (data.network_ms !== undefined) mine.network_ms = data.network_ms;
  if (data.times) {
    mine.queue_us = Math.max(mine.queue_us, data.times.queue_us);
    mine.step_us = Math.max(mine.step_us, data.times.step_us);
  }
  if (data.frames) takeFrames(mine, data.frames);
  if (data.event) showEvent(mine, data.event);
  if (data.flushed && (mine.closing || !soundOutput(mine.model))) setTimeout(() => run === mine && stop(), 150);
}

function takeFigures(mine, figures) {
  const ms = 1000 / mine.context.sampleRate;
  showLevel("level-in", figures.inPeak, figures.inPower / figures.frames);
  showLevel("level-out", figures.outPeak, figures.outPower / figures.frames);
  const latency = figures.latency === null ? null : figures.latency * ms;
  const total = figures.delay === null ? latency : figures.delay * ms;
  if (latency === null) return;
  let left = latency;
  const part = (longest) => { const share = Math.min(left, longest ?? 0); left -= share; return share; };
  const step = part(mine.step_us / 1000), queue = part(mine.queue_us / 1000), network = part(mine.network_ms), model = left;
  const playout = Math.max(0, total - latency);
  mine.queue_us = mine.step_us = 0;
  Object.assign(mine, { delay: figures.delay, since: figures.since, now: figures.now });
  mine.history.push({ at: performance.now(), model, network, queue, step, playout });
  while (mine.history[0].at < performance.now() - HISTORY_S * 1000) mine.history.shift();
  if (performance.now() - (mine.delayShownAt ?? 0) < 500) return;
  mine.delayShownAt = performance.now();
  showDelay(mine, total, figures.late);
}

// ---- Numbers and words

const milliseconds = (value) => (value === 0 ? "–" : value < 1 ? `${value.toFixed(2)} ms` : `${value.toFixed(1)} ms`);

function showDelay(mine, total, late) {
  const recent = mine.history.slice(-20);
  const median = (part) => recent.map((each) => each[part]).sort((a, b) => a - b)[Math.floor(recent.length / 2)];
  $("delay-total").replaceChildren(total.toFixed(1), Object.assign(document.createElement("small"), { textContent: " ms" }));
  Object.assign($("delay-total").dataset, { samples: mine.delay ?? "", since: mine.since, now: mine.now, rate: mine.context.sampleRate }); // for programs
  for (const part of ["playout", "step", "queue", "network", "model"]) $(`part-${part}`).textContent = milliseconds(median(part));
  $("late").textContent = mine.delay === null ? "–" : `${late.toLocaleString("en")} samples`;
  const device = (mine.context.outputLatency || mine.context.baseLatency || 0) * 1000;
  $("device").textContent = mine.delay === null ? "–" : device ? `+ ${device.toFixed(0)} ms` : "not reported";
  $("out-note").textContent = mine.delay === null ? "" : `${isPressed("bypass") ? "bypass: the input" : "the model"}, ${total.toFixed(0)} ms after the input`;
}

function setStatus(state, text) {
  $("status").dataset.state = state;
  $("status").textContent = text;
}

function showError(error) {
  $("error").hidden = !error;
  $("error-message").textContent = error?.message ?? "";
  $("error-hint").textContent = error?.hint ?? "";
  $("error-hint").hidden = !error?.hint;
}

function toStreamError(error) {
  if (error instanceof StreamError) return error;
  const known = {
    NotAllowedError: ["The browser was not allowed to use the microphone.", "Allow it in the browser's settings of this site."],
    NotFoundError: ["There is no microphone.", "Plug one in, or choose a file."],
    NotReadableError: ["The microphone is in use elsewhere.", "Close the other program."],
    OverconstrainedError: ["The chosen microphone is gone.", "Choose another."],
  }[error.name];
  return new StreamError("page", known?.[0] ?? error.message, known?.[1] ?? "");
}

// ---- Recording: input and output on one clock, in one file

function showRecording(mine) {
  const seconds = mine.recordedFrames / mine.context.sampleRate;
  $("recording").hidden = false;
  $("recording").textContent = `Recording, ${seconds.toFixed(0)} s: input left, output right`;
  if (seconds > MAX_RECORDED_S) press("record", false);
}

function save(mine) {
  const parts = mine.recorded.flat();
  mine.recorded = null;
  const sound = interleave(parts), frames = sound.length / 2;
  if (!frames) return;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(wav(sound, 2, mine.context.sampleRate));
  link.download = `${mine.model.name}-delay-${mine.delay ?? 0}-samples.wav`;
  Object.assign(link.dataset, { samples: mine.delay ?? "", since: mine.since ?? 0 }); // the delay, and from which frame on it held
  link.textContent = `Save ${link.download}`;
  $("recording").hidden = false;
  $("recording").replaceChildren(link, ` ${(frames / mine.context.sampleRate).toFixed(1)} s, input left, output right`);
}

// ---- Pictures

let drawn = 0;
function draw(now) {
  requestAnimationFrame(draw);
  if (!run?.spectra || (calmer.matches && now - drawn < 500)) return;
  for (const scope of run.spectra) scope.draw(performance.now());
  if (now - drawn < 100) return;
  drawn = now;
  drawDelay(run);
  if (run.frames.size) drawFrames(run);
}

// ---- Controls

const choiceOf = (name) => document.querySelector(`input[name=${name}]:checked`).value;
const isPressed = (id) => $(id).getAttribute("aria-pressed") === "true";
const volume = () => (isPressed("mute") ? 0 : 10 ** ($("volume").value / 20));

function press(id, on = !isPressed(id)) {
  $(id).setAttribute("aria-pressed", on);
  if (id === "bypass") run?.node?.port.postMessage({ bypass: on });
  if (id === "mute") run?.gain?.gain.setTargetAtTime(volume(), run.context.currentTime, 0.01);
  if (id === "record") setRecording(on);
  if (id === "view") {
    showWaveform(on);
    labelScopes(run?.context.sampleRate ?? selectedModel()?.rate ?? 16000);
    run?.spectra?.forEach((scope) => scope.clear());
    for (const [name, canvas] of [["input", "scope-in"], ["output", "scope-out"]]) $(canvas).setAttribute("aria-label", `${on ? "Waveform" : "Spectrogram"} of the ${name} over the last seconds`);
  }
}

function setRecording(on) {
  if (on) $("recording").replaceChildren("Records from the next start, or from now on");
  $("recording").hidden = !on && !$("recording").firstElementChild;
  const mine = run;
  if (!mine?.node) return;
  mine.node.port.postMessage({ record: on });
  if (on) { mine.recorded = []; mine.recordedFrames = 0; }
  else if (mine.recorded) setTimeout(() => mine.recorded && save(mine), 100);
}

async function listMicrophones() {
  const devices = (await navigator.mediaDevices.enumerateDevices()).filter(({ kind, label }) => kind === "audioinput" && label);
  const before = $("microphone").value;
  $("microphone").replaceChildren(new Option("the system's choice", ""), ...devices.map(({ label, deviceId }) => new Option(label, deviceId)));
  $("microphone").value = before;
}

function showSource() {
  $("microphone-setting").hidden = choiceOf("source") !== "microphone";
  $("file-setting").hidden = choiceOf("source") !== "file";
}

const toggle = () => (run ? finish() : start());
const KEYS = { s: toggle, b: () => press("bypass"), m: () => press("mute"), r: () => press("record"), w: () => press("view") };

$("start").onclick = toggle;
for (const id of ["bypass", "mute", "record", "view"]) $(id).onclick = () => press(id);
$("clear").onclick = () => { $("events").replaceChildren(); $("text").replaceChildren(); $("no-events").hidden = false; };
$("volume").oninput = () => {
  $("volume").setAttribute("aria-valuetext", `${$("volume").value} dB`);
  if (run?.gain) run.gain.gain.setTargetAtTime(volume(), run.context.currentTime, 0.01);
};
$("model").onchange = describeModel;
$("token-setting").onsubmit = (event) => { event.preventDefault(); showModels(); };
for (const each of document.querySelectorAll("input[name=source]")) each.onchange = showSource;
document.addEventListener("visibilitychange", () => { if (!document.hidden) run?.context?.resume(); });
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("select, input:not([type=range], [type=radio], [type=checkbox])");
  const action = KEYS[event.key.toLowerCase()];
  if (!action || typing || !$("keys").checked || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const control = { s: "start", b: "bypass", m: "mute" }[event.key.toLowerCase()];
  if (control && $(control).disabled) return;
  event.preventDefault();
  action();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readColours();
  run?.spectra?.forEach((scope) => scope.clear());
});

readColours();
$("token").value = sessionStorage.getItem("token") ?? "";
showSource();
await showModels();
labelScopes(selectedModel()?.rate ?? 16000);
requestAnimationFrame(draw);
