/* Sound of 16 bits at 16 kHz from stdin, without its noise to stdout. demos/README.md says how to compile it. */
#include "denoise.h"
#include <stdint.h>
#include <stdio.h>

static unsigned char room[1 << 16];

int main(void) {
  const size_t frames = denoise_ports(NULL)->frames, spare = (size_t)(-(uintptr_t)room % denoise_alignment());
  int16_t sound[4096];
  float in[4096], out[4096];
  const void *inputs[] = {in};
  void *outputs[] = {out};
  denoise_stream *stream;
  if (frames > 4096 || denoise_init(room + spare, sizeof room - spare, &stream) != DENOISE_OK) return 1;
  for (;;) {
    const size_t count = fread(sound, 2, frames, stdin);
    size_t first, valid, i;
    for (i = 0; i < count; ++i) in[i] = sound[i] / 32768.0f;
    do {
      const int code =
          count == frames ? denoise_step(stream, inputs, outputs) : denoise_flush(stream, inputs, &count, outputs);
      if (code != DENOISE_OK) return code == DENOISE_ENDED ? 0 : 1;
      valid = denoise_valid(stream, 0, &first);
      for (i = 0; i < valid; ++i, ++first)
        sound[i] = (int16_t)(32767.0f * (out[first] > 1 ? 1 : out[first] < -1 ? -1 : out[first]));
      fwrite(sound, 2, valid, stdout);
    } while (count < frames); /* a short pulse is the last: the flush continues until nothing is left */
  }
}
