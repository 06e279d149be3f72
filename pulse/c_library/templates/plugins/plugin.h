/* What the plug-ins of @TITLE@ share: one stream in memory of its own. */
#include "@NAME@_blocks.h"

#include <stdint.h>
#include <stdlib.h>

enum { IN_CHANNELS = @UPPER@_INPUT_CHANNELS, OUT_CHANNELS = @UPPER@_OUTPUT_CHANNELS };
#if defined(_WIN32)
#define ENTRY __declspec(dllexport)
#else
#define ENTRY __attribute__((visibility("default")))
#endif

struct sound {
  @NAME@_blocks *blocks;
  void *memory;
};

/* Begins a stream for blocks of any size; gives 0 if the rate does not suit the model or there is no memory. */
static int begin_sound(struct sound *sound, double rate_hz) {
  const int rate = rate_hz >= 1 && rate_hz <= 1e7 ? (int)(rate_hz + 0.5) : 0;
  const size_t bytes = @NAME@_blocks_size(rate, 1);
  uintptr_t address;
  sound->memory = bytes ? malloc(bytes + 64) : 0;
  if (!sound->memory) return 0;
  address = ((uintptr_t)sound->memory + 63) / 64 * 64;
  if (@NAME@_blocks_init((void *)address, bytes, rate, 1, &sound->blocks) == @UPPER@_OK) return 1;
  free(sound->memory);
  sound->memory = 0;
  return 0;
}

static void end_sound(struct sound *sound) {
  free(sound->memory);
  sound->memory = 0;
}
