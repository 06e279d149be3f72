// The page: the choice of a model, start and stop, the controls.

import { listModels, StreamError, valuesInFrame } from "./client.js";
import { takeFigures } from "./delay.js";
import { $, choiceOf, isPressed } from "./elements.js";
import { drawDelay, drawFrames, labelScopes, readColours, Scope, showWaveform, takeFrames } from "./pictures.js";
import { showEvent, showLevel } from "./readings.js";
import { isTooLong, saveRecording, showRecording } from "./recording.js";
import { setStatus, showError, toStreamError } from "./status.js";

const BLOCK_S = 0.01;
const MIN_RATE_HZ = 3000; // of sound that a browser plays
const calmer = matchMedia("(prefers-reduced-motion: reduce)");
const base = new URL("./", location.href);

let models = [];
let currentRun = null; // the present run: context, nodes, worker, figures

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
    $("model-note").textContent = error.code === "token" ? "The server requires a token." : "";
  }
  const before = $("model").value || new URLSearchParams(location.search).get("model");
  $("model").replaceChildren(
    ...models.map((model) => {
      const option = new Option(
        model.title && model.title !== model.name ? `${model.name}: ${model.title}` : model.name,
        model.name,
      );
      option.disabled = Boolean(reasonAgainst(model));
      return option;
    }),
  );
  const first =
    models.find((model) => model.name === before && !reasonAgainst(model)) ??
    models.find((model) => !reasonAgainst(model));
  if (first) $("model").value = first.name;
  $("model").disabled = !first;
  $("start").disabled = !first;
  describeModel();
}

/** Why the page cannot run a model; empty if it can. */
function reasonAgainst(model) {
  if (model.inputs.length !== 1) return `it has ${model.inputs.length} inputs`;
  if (model.inputs[0].kind !== "sound") return "its input is not sound";
  if (!isOneChannel(model.inputs[0])) return `its input has ${valuesInFrame(model.inputs[0])} channels`;
  if (!model.rate) return "its rate is not known";
  return "";
}

/** Whether a model shall run here: `web` is the folder of its WebAssembly form, if the server has one. */
const isInPage = (model) => Boolean(model.web) && choiceOf("place") === "page";

const selectedModel = () => models.find((model) => model.name === $("model").value);
const isOneChannel = (port) => port.kind === "sound" && valuesInFrame(port) === 1;
/** The output that is played: sound, and not one value in each of some longer frames. */
const soundOutput = (model) => model.outputs.find((output) => isOneChannel(output) && output.rate >= MIN_RATE_HZ);

function describeModel() {
  const model = selectedModel();
  if (!model) {
    if (models.length)
      $("model-note").textContent =
        `No model here takes one audio input: ${models.map((m) => `${m.name}, ${reasonAgainst(m)}`).join("; ")}.`;
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
  const model = selectedModel();
  const source = choiceOf("source");
  setStatus("waiting", "Starting …");
  $("start").disabled = true;
  currentRun = {
    model,
    source,
    history: [],
    frames: new Map(),
    closing: false,
    network_ms: 0,
    queue_us: 0,
    step_us: 0,
  };
  const run = currentRun;
  try {
    currentRun.context = newContext(model.rate);
    const input = await openSource(run);
    if (currentRun !== run) return;
    await connect(run, input);
    if (currentRun !== run) return;
    keepScreenOn(run);
  } catch (error) {
    stop(toStreamError(error));
    return;
  }
  $("start").disabled = false;
  $("start").firstChild.data = "Stop";
  $("start").classList.add("running");
  document.body.classList.add("running");
  for (const control of document.querySelectorAll("#model, #microphone, #file, input[name=source], input[name=place]"))
    control.disabled = true;
}

/** The screen is a help, not a need: browsers may refuse it. */
async function keepScreenOn(run) {
  run.lock = await navigator.wakeLock?.request("screen").catch(() => null);
}

/** A context at the model's rate, so that nothing is resampled twice; browsers that refuse the rate get their own. */
function newContext(rate) {
  try {
    return new AudioContext({ sampleRate: rate, latencyHint: "interactive" });
  } catch {
    return new AudioContext({ latencyHint: "interactive" });
  }
}

async function openSource(run) {
  if (run.source === "microphone") {
    if (!navigator.mediaDevices) {
      throw new StreamError(
        "microphone",
        "This browser gives pages the microphone only over https, or from localhost.",
        "Start the server with a certificate, or choose a file.",
      );
    }
    const device = $("microphone").value;
    const plain = { echoCancellation: false, noiseSuppression: false, autoGainControl: false, channelCount: 1 };
    run.media = await navigator.mediaDevices.getUserMedia({
      audio: { ...plain, ...(device && { deviceId: { exact: device } }) },
    });
    run.media.getAudioTracks()[0].onended = () =>
      currentRun === run && stop(new StreamError("microphone", "The microphone was disconnected."));
    listMicrophones();
    try {
      return run.context.createMediaStreamSource(run.media);
    } catch {
      run.context.close(); // Firefox: the rates of microphone and context must agree
      run.context = new AudioContext({ latencyHint: "interactive" });
      return run.context.createMediaStreamSource(run.media);
    }
  }
  const bytes = run.source === "file" ? await $("file").files[0]?.arrayBuffer() : await example();
  if (!bytes) throw new StreamError("file", "No file is chosen.", "Choose an audio file.");
  const node = run.context.createBufferSource();
  node.buffer = await run.context.decodeAudioData(bytes).catch(() => {
    throw new StreamError("file", "This browser cannot read the file as audio.", "Try WAV, MP3 or FLAC.");
  });
  return node;
}

async function example() {
  const answer = await fetch(new URL("example.flac", base));
  if (!answer.ok) throw new StreamError("file", "The server has no example recording.", "Choose a file.");
  return answer.arrayBuffer();
}

async function connect(run, input) {
  const { context, model } = run;
  const output = soundOutput(model);
  await context.audioWorklet.addModule(new URL("worklet.js", base));
  const block = Math.max(1, Math.round(BLOCK_S * model.rate));
  const node = new AudioWorkletNode(context, "pulse-stream", {
    numberOfInputs: 1,
    numberOfOutputs: 1,
    outputChannelCount: [1],
    processorOptions: { modelRate: model.rate, outRate: output?.rate, block },
  });
  node.onprocessorerror = () => stop(new StreamError("page", "The audio thread failed.", "Start again."));
  const gain = new GainNode(context, { gain: volume() });
  Object.assign(run, {
    node,
    gain,
    input,
    inputAnalyser: new AnalyserNode(context, { fftSize: 512, smoothingTimeConstant: 0 }),
    outputAnalyser: new AnalyserNode(context, { fftSize: 512, smoothingTimeConstant: 0 }),
    block,
  });
  input.connect(node);
  input.connect(run.inputAnalyser);
  node.connect(run.outputAnalyser);
  node.connect(gain).connect(context.destination);
  run.spectra = [new Scope($("scope-in"), run.inputAnalyser), new Scope($("scope-out"), run.outputAnalyser)];
  node.port.onmessage = ({ data }) => currentRun === run && fromAudio(run, data);
  node.port.postMessage({ bypass: isPressed("bypass"), record: isPressed("record") });

  run.worker = new Worker(new URL("worker.js", base), { type: "module" });
  run.worker.onerror = (event) =>
    currentRun === run &&
    stop(new StreamError("page", event.message || "The page's worker failed.", "Load the page again."));
  run.worker.onmessage = ({ data }) => currentRun === run && fromWorker(run, data);
  const wire = new MessageChannel();
  const url = new URL("v1/stream", base);
  url.protocol = base.protocol === "https:" ? "wss:" : "ws:";
  const hello = {
    model: model.name,
    rate: model.rate,
    format: "f32",
    block,
    ...($("token").value && { token: $("token").value }),
  };
  node.port.postMessage({ wire: wire.port1 }, [wire.port1]);
  const open = isInPage(model)
    ? {
        folder: new URL(model.web, base).href,
        token: $("token").value,
        ports: { inputs: model.inputs, outputs: model.outputs },
      }
    : { client: new URL("client.js", base).href, url: url.href, hello };
  run.worker.postMessage({ open: { ...open, output: output?.port }, port: wire.port2 }, [wire.port2]);
  context.onstatechange = () => {
    if (currentRun !== run || !run.began) return;
    if (context.state === "running") setStatus("running", run.words);
    else setStatus("waiting", "Paused by the browser");
  };
  await context.resume();
}

function begin(run) {
  const { context, node, input } = run;
  if (run.source === "microphone") {
    node.port.postMessage({ start: null });
  } else {
    const first = Math.ceil((context.currentTime + 0.2) * context.sampleRate);
    node.port.postMessage({ start: first, end: first + input.buffer.length });
    input.start(first / context.sampleRate);
  }
  if (isPressed("record")) run.recorded = [];
  run.words = run.source === "microphone" ? "Listening" : "Playing";
  setStatus("running", run.words);
}

/** End the input; the rest of the output and the last events still come. */
function finish() {
  if (!currentRun?.began) return stop();
  currentRun.closing = true;
  setStatus("waiting", "Ending …");
  currentRun.node.port.postMessage({ stop: true });
  setTimeout((run) => currentRun === run && stop(), 2000, currentRun);
  return undefined;
}

function stop(error = null) {
  const run = currentRun;
  currentRun = null;
  if (run) {
    run.media?.getTracks().forEach((track) => {
      track.onended = null;
      track.stop();
    });
    run.worker?.postMessage({ close: true });
    if (run.context?.state !== "closed") run.context?.close();
    run.lock?.release();
    if (run.recorded) saveRecording(run);
  }
  $("start").firstChild.data = "Start";
  $("start").classList.remove("running");
  document.body.classList.remove("running");
  $("start").disabled = !selectedModel();
  for (const control of document.querySelectorAll("#microphone, #file, input[name=source], input[name=place]"))
    control.disabled = false;
  $("model").disabled = !models.length;
  for (const id of ["level-in", "level-out"]) {
    $(id).shownAt = 0;
    showLevel(id, 0, 0);
  }
  showError(error);
  setStatus(error ? "failed" : "idle", error ? "Stopped by an error" : "Ready");
}

// ---- Messages of the audio thread and the worker

function fromAudio(run, { figures, recorded, delay, since, ended }) {
  if (recorded && run.recorded) {
    run.recorded.push(recorded);
    Object.assign(run, { delay, since });
    run.recordedFrames =
      (run.recordedFrames ?? 0) + recorded.reduce((sum, part, i) => sum + (i % 2 ? 0 : part.length), 0);
    showRecording(run);
    if (isTooLong(run)) press("record", false);
  }
  if (figures) takeFigures(run, figures);
  if (ended && run.began) stop();
}

function fromWorker(run, data) {
  if (data.failed) stop(new StreamError(data.failed.code, data.failed.message, data.failed.hint));
  if (data.ready) {
    run.began = true;
    begin(run);
  }
  if (data.network_ms !== undefined) run.network_ms = data.network_ms;
  if (data.times) {
    run.queue_us = Math.max(run.queue_us, data.times.queue_us);
    run.step_us = Math.max(run.step_us, data.times.step_us);
  }
  if (data.frames) takeFrames(run, data.frames);
  if (data.event) showEvent(run, data.event);
  if (data.flushed && (run.closing || !soundOutput(run.model))) setTimeout(() => currentRun === run && stop(), 150);
}

// ---- Pictures

let drawn = 0;
function draw(now) {
  requestAnimationFrame(draw);
  if (!currentRun?.spectra || (calmer.matches && now - drawn < 500)) return;
  for (const scope of currentRun.spectra) scope.draw(performance.now());
  if (now - drawn < 100) return;
  drawn = now;
  drawDelay(currentRun);
  if (currentRun.frames.size) drawFrames(currentRun);
}

// ---- Controls

const volume = () => (isPressed("mute") ? 0 : 10 ** ($("volume").value / 20));

function press(id, on = !isPressed(id)) {
  $(id).setAttribute("aria-pressed", on);
  if (id === "bypass") currentRun?.node?.port.postMessage({ bypass: on });
  if (id === "mute") currentRun?.gain?.gain.setTargetAtTime(volume(), currentRun.context.currentTime, 0.01);
  if (id === "record") setRecording(on);
  if (id === "view") {
    showWaveform(on);
    labelScopes(currentRun?.context.sampleRate ?? selectedModel()?.rate ?? 16000);
    currentRun?.spectra?.forEach((scope) => scope.clear());
    const picture = on ? "Waveform" : "Spectrogram";
    $("scope-in").setAttribute("aria-label", `${picture} of the input over the last seconds`);
    $("scope-out").setAttribute("aria-label", `${picture} of the output over the last seconds`);
  }
}

function setRecording(on) {
  if (on) $("recording").replaceChildren("Records from the next start, or from now on");
  $("recording").hidden = !on && !$("recording").firstElementChild;
  const run = currentRun;
  if (!run?.node) return;
  run.node.port.postMessage({ record: on });
  if (on) {
    run.recorded = [];
    run.recordedFrames = 0;
  } else if (run.recorded) setTimeout(() => run.recorded && saveRecording(run), 100);
}

async function listMicrophones() {
  const devices = (await navigator.mediaDevices.enumerateDevices()).filter(
    ({ kind, label }) => kind === "audioinput" && label,
  );
  const before = $("microphone").value;
  $("microphone").replaceChildren(
    new Option("the system's choice", ""),
    ...devices.map(({ label, deviceId }) => new Option(label, deviceId)),
  );
  $("microphone").value = before;
}

function showSource() {
  $("microphone-setting").hidden = choiceOf("source") !== "microphone";
  $("file-setting").hidden = choiceOf("source") !== "file";
}

const toggle = () => (currentRun ? finish() : start());
const KEYS = {
  s: toggle,
  b: () => press("bypass"),
  m: () => press("mute"),
  r: () => press("record"),
  w: () => press("view"),
};

$("start").onclick = toggle;
for (const id of ["bypass", "mute", "record", "view"]) $(id).onclick = () => press(id);
$("clear").onclick = () => {
  $("events").replaceChildren();
  $("text").replaceChildren();
  $("no-events").hidden = false;
};
$("volume").oninput = () => {
  $("volume").setAttribute("aria-valuetext", `${$("volume").value} dB`);
  if (currentRun?.gain) currentRun.gain.gain.setTargetAtTime(volume(), currentRun.context.currentTime, 0.01);
};
$("model").onchange = describeModel;
$("token-setting").onsubmit = (event) => {
  event.preventDefault();
  showModels();
};
for (const choice of document.querySelectorAll("input[name=source]")) choice.onchange = showSource;
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) currentRun?.context?.resume();
});
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
  currentRun?.spectra?.forEach((scope) => scope.clear());
});

readColours();
$("token").value = sessionStorage.getItem("token") ?? "";
showSource();
await showModels();
labelScopes(selectedModel()?.rate ?? 16000);
requestAnimationFrame(draw);
