/* @TITLE@ as a LADSPA plug-in; pulse @VERSION@ wrote it. The interface is version 1.1 of LADSPA, in our own words. */
#include "@NAME@_plugin.h"

typedef struct {
  int hints;
  float low, high;
} range;

typedef struct descriptor descriptor;
struct descriptor {
  unsigned long id;
  const char *label;
  int properties;
  const char *name, *maker, *copyright;
  unsigned long ports;
  const int *kinds;
  const char *const *names;
  const range *ranges;
  void *unused;
  void *(*instantiate)(const descriptor *, unsigned long rate);
  void (*connect_port)(void *, unsigned long port, float *data);
  void (*activate)(void *);
  void (*run)(void *, unsigned long frames);
  void (*run_adding)(void *, unsigned long frames);
  void (*set_run_adding_gain)(void *, float gain);
  void (*deactivate)(void *);
  void (*cleanup)(void *);
};

enum { INPUT = 1, OUTPUT = 2, CONTROL = 4, AUDIO = 8, RUNS_HARD_REAL_TIME = 4 };
enum { FROM = 1, TOGGLED = 4, WHOLE = 32, DEFAULT_0 = 0x200 };
enum { OUT = INPUTS, BYPASS, LATENCY, PORTS };

struct instance {
  struct sound sound;
  float *ports[PORTS];
};

static void *instantiate(const descriptor *about, unsigned long rate) {
  struct instance *made = calloc(1, sizeof *made);
  (void)about;
  if (made && begin_sound(&made->sound, (double)rate)) return made;
  free(made);
  return 0;
}

static void connect_port(void *handle, unsigned long port, float *data) {
  if (port < PORTS) ((struct instance *)handle)->ports[port] = data;
}

static void activate(void *handle) {
  struct instance *one = handle;
  @NAME@_blocks_reset(one->sound.blocks);
}

static void run(void *handle, unsigned long frames) {
  struct instance *one = handle;
  const float *inputs[INPUTS];
  int i;
  for (i = 0; i < INPUTS; ++i) inputs[i] = one->ports[i];
  if (one->ports[BYPASS]) @NAME@_blocks_bypass(one->sound.blocks, *one->ports[BYPASS] > 0);
  if (one->ports[OUT]) @NAME@_blocks_process(one->sound.blocks, inputs, one->ports[OUT], frames);
  if (one->ports[LATENCY]) *one->ports[LATENCY] = (float)@NAME@_blocks_delay(one->sound.blocks);
}

static void cleanup(void *handle) {
  struct instance *one = handle;
  end_sound(&one->sound);
  free(one);
}

static const int kinds[PORTS] = {@INPUT_KINDS@, OUTPUT | AUDIO, INPUT | CONTROL, OUTPUT | CONTROL};
static const char *const names[PORTS] = {@INPUT_NAMES@, "Output", "Bypass", "latency"};
static const range ranges[PORTS] = {@INPUT_RANGES@, {0, 0, 0}, {TOGGLED | DEFAULT_0, 0, 0}, {FROM | WHOLE, 0, 0}};
static const descriptor about = {
    @ID@, "@NAME@", RUNS_HARD_REAL_TIME, @TEXT@, "pulse", "as the model's", PORTS, kinds, names, ranges, 0,
    instantiate, connect_port, activate, run, 0, 0, 0, cleanup};

ENTRY const descriptor *ladspa_descriptor(unsigned long index);
ENTRY const descriptor *ladspa_descriptor(unsigned long index) { return index ? 0 : &about; }
