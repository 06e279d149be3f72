/* What the plug-ins of @TITLE@ share whose host connects a place to each port: LADSPA and LV2. */
#include "@NAME@_plugin.h"

enum { OUT = IN_CHANNELS, SWITCH = OUT + OUT_CHANNELS, LATENCY, PORTS };

struct instance {
  struct sound sound;
  float *ports[PORTS];
};

static void *make_instance(double rate_hz) {
  struct instance *instance = calloc(1, sizeof *instance);
  if (instance && begin_sound(&instance->sound, rate_hz)) return instance;
  free(instance);
  return 0;
}

static void set_port(struct instance *one, size_t port, void *place) {
  if (port < PORTS) one->ports[port] = place;
}

static void activate(void *handle) {
  struct instance *one = handle;
  @NAME@_blocks_reset(one->sound.blocks);
}

/* The switch bypasses the model while it is on, or while it is off. */
static void process(struct instance *one, size_t frames, int bypass_if_on) {
  const float *inputs[IN_CHANNELS];
  int i;
  for (i = 0; i < IN_CHANNELS; ++i) inputs[i] = one->ports[i];
  if (one->ports[SWITCH]) @NAME@_blocks_bypass(one->sound.blocks, (*one->ports[SWITCH] > 0) == bypass_if_on);
  @NAME@_blocks_process(one->sound.blocks, inputs, one->ports + OUT, frames);
  if (one->ports[LATENCY]) *one->ports[LATENCY] = (float)@NAME@_blocks_delay(one->sound.blocks);
}

static void cleanup(void *handle) {
  struct instance *one = handle;
  end_sound(&one->sound);
  free(one);
}
