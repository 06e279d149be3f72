// Whether the page runs, and the errors that it shows.

import { StreamError } from "./client.js";
import { $ } from "./elements.js";

export function setStatus(state, text) {
  $("status").dataset.state = state;
  $("status").textContent = text;
}

export function showError(error) {
  $("error").hidden = !error;
  $("error-message").textContent = error?.message ?? "";
  $("error-hint").textContent = error?.hint ?? "";
  $("error-hint").hidden = !error?.hint;
}

export function toStreamError(error) {
  if (error instanceof StreamError) return error;
  const known = {
    NotAllowedError: [
      "The browser was not allowed to use the microphone.",
      "Allow it in the browser's settings of this site.",
    ],
    NotFoundError: ["There is no microphone.", "Plug one in, or choose a file."],
    NotReadableError: ["The microphone is in use elsewhere.", "Close the other program."],
    OverconstrainedError: ["The chosen microphone is no longer available.", "Choose another."],
  }[error.name];
  return new StreamError("page", known?.[0] ?? error.message, known?.[1] ?? "");
}
