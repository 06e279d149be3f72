/* @TITLE@ as an LV2 plug-in; pulse @VERSION@ wrote it. The interface is that of LV2's core, in our own words. */
#include "@NAME@_plugin.h"

typedef struct descriptor descriptor;
struct descriptor {
  const char *uri;
  void *(*instantiate)(const descriptor *, double rate, const char *folder, const void *const *features);
  void (*connect_port)(void *, uint32_t port, void *data);
  void (*activate)(void *);
  void (*run)(void *, uint32_t frames);
  void (*deactivate)(void *);
  void (*cleanup)(void *);
  const void *(*extension_data)(const char *uri);
};

enum { OUT = INPUTS, ENABLED, LATENCY, PORTS };

struct instance {
  struct sound sound;
  float *ports[PORTS];
};

static void *instantiate(const descriptor *about, double rate, const char *folder, const void *const *features) {
  struct instance *made = calloc(1, sizeof *made);
  (void)about, (void)folder, (void)features;
  if (made && begin_sound(&made->sound, rate)) return made;
  free(made);
  return 0;
}

static void connect_port(void *handle, uint32_t port, void *data) {
  if (port < PORTS) ((struct instance *)handle)->ports[port] = data;
}

static void activate(void *handle) {
  struct instance *one = handle;
  @NAME@_blocks_reset(one->sound.blocks);
}

static void run(void *handle, uint32_t frames) {
  struct instance *one = handle;
  const float *inputs[INPUTS];
  int i;
  for (i = 0; i < INPUTS; ++i) inputs[i] = one->ports[i];
  if (one->ports[ENABLED]) @NAME@_blocks_bypass(one->sound.blocks, *one->ports[ENABLED] <= 0);
  if (one->ports[OUT]) @NAME@_blocks_process(one->sound.blocks, inputs, one->ports[OUT], frames);
  if (one->ports[LATENCY]) *one->ports[LATENCY] = (float)@NAME@_blocks_delay(one->sound.blocks);
}

static void cleanup(void *handle) {
  struct instance *one = handle;
  end_sound(&one->sound);
  free(one);
}

static const descriptor about = {"@URI@", instantiate, connect_port, activate, run, 0, cleanup, 0};

ENTRY const descriptor *lv2_descriptor(uint32_t index);
ENTRY const descriptor *lv2_descriptor(uint32_t index) { return index ? 0 : &about; }
