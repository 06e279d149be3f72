// The file of a recording: input left, output right.

/** Parts of two sides, left and right in turn, as one sound of two channels. */
export function interleave(parts) {
  const sides = [0, 1].map((side) => parts.filter((_, i) => i % 2 === side));
  const joined = new Float32Array(2 * sides[0].reduce((sum, part) => sum + part.length, 0));
  sides.forEach((side, channel) => {
    let at = channel;
    for (const part of side) for (const value of part) { joined[at] = value; at += 2; }
  });
  return joined;
}

/** Samples of interleaved channels as a WAV file of 32-bit floats. */
export function wav(samples, channels, rate) {
  const view = new DataView(new ArrayBuffer(44));
  const word = (at, text) => [...text].forEach((letter, i) => view.setUint8(at + i, letter.charCodeAt(0)));
  word(0, "RIFF"); view.setUint32(4, 36 + samples.byteLength, true); word(8, "WAVEfmt ");
  view.setUint32(16, 16, true); view.setUint16(20, 3, true); view.setUint16(22, channels, true);
  view.setUint32(24, rate, true); view.setUint32(28, rate * channels * 4, true);
  view.setUint16(32, channels * 4, true); view.setUint16(34, 32, true);
  word(36, "data"); view.setUint32(40, samples.byteLength, true);
  return new Blob([view, samples], { type: "audio/wav" });
}
