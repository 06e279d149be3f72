/* Runs noise through blocks at several rates, in memory of the size that they need; 0 if all samples are finite. */
#include "small_blocks.h"

#include <stdint.h>
#include <stdlib.h>

enum { INPUTS = SMALL_INPUT_CHANNELS, OUTPUTS = SMALL_OUTPUT_CHANNELS, BLOCKS = 40 };

static uint32_t state = 1;

static float *channel(size_t frames) {
  float *samples = malloc(frames * sizeof *samples);
  size_t i;
  for (i = 0; i < frames; ++i) {
    state = state * 1664525u + 1013904223u;
    samples[i] = (float)(state >> 8) / 16777216.0f - 0.5f;
  }
  return samples;
}

static int run_block(small_blocks *blocks, size_t frames) {
  float *inputs[INPUTS], *outputs[OUTPUTS];
  const float *sources[INPUTS];
  int i, failed = 0;
  size_t k;
  for (i = 0; i < INPUTS; ++i) sources[i] = inputs[i] = channel(frames);
  for (i = 0; i < OUTPUTS; ++i) outputs[i] = channel(frames);
  small_blocks_process(blocks, sources, outputs, frames);
  for (i = 0; i < OUTPUTS; ++i) {
    for (k = 0; k < frames; ++k) failed |= outputs[i][k] - outputs[i][k] != 0;
    free(outputs[i]);
  }
  for (i = 0; i < INPUTS; ++i) free(inputs[i]);
  return failed;
}

static int run_stream(int rate_hz, int block) {
  const size_t size = small_blocks_size(rate_hz, block);
  unsigned char *memory = malloc(size + 63), *start = memory + (64 - (uintptr_t)memory % 64) % 64;
  const float *silence[INPUTS] = {0};
  float *nowhere[OUTPUTS] = {0};
  small_blocks *blocks;
  int i, failed = small_blocks_init(start, size, rate_hz, block, &blocks);
  for (i = 0; !failed && i < BLOCKS; ++i) {
    if (i % 10 == 5) small_blocks_bypass(blocks, i % 20 == 5);
    failed = run_block(blocks, block > 1 ? (size_t)block : 1 + (size_t)i * 37 % 700);
    small_blocks_process(blocks, silence, nowhere, (size_t)block);
  }
  if (!failed) small_blocks_reset(blocks);
  free(memory);
  return failed;
}

int main(void) {
  const int rates[] = {16000, 48000, 44100, 8000};
  int i;
  for (i = 0; i < 4; ++i)
    if (run_stream(rates[i], 1) || run_stream(rates[i], 128) || run_stream(rates[i], 480)) return 2;
  return 0;
}
