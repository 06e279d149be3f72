// Elements of the page, and what its controls are set to.

export const $ = (id) => document.getElementById(id);
export const choiceOf = (name) => document.querySelector(`input[name=${name}]:checked`).value;
export const isPressed = (id) => $(id).getAttribute("aria-pressed") === "true";
