/* @TITLE@ as a LADSPA plug-in; pulse @VERSION@ wrote it. The interface is version 1.1 of LADSPA, in our own words. */
#include "@NAME@_ports.h"

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

static void *instantiate(const descriptor *about, unsigned long rate) {
  (void)about;
  return make_instance((double)rate);
}

static void connect_port(void *handle, unsigned long port, float *data) { set_port(handle, port, data); }
static void run(void *handle, unsigned long frames) { process(handle, frames, 1); }

static const int kinds[PORTS] = {@AUDIO_KINDS@, INPUT | CONTROL, OUTPUT | CONTROL};
static const char *const names[PORTS] = {@AUDIO_NAMES@, "Bypass", "latency"};
static const range ranges[PORTS] = {@AUDIO_RANGES@, {TOGGLED | DEFAULT_0, 0, 0}, {FROM | WHOLE, 0, 0}};
static const descriptor about = {
    @ID@, "@NAME@", RUNS_HARD_REAL_TIME, @TEXT@, "pulse", "as the model's", PORTS, kinds, names, ranges, 0,
    instantiate, connect_port, activate, run, 0, 0, 0, cleanup};

ENTRY const descriptor *ladspa_descriptor(unsigned long index);
ENTRY const descriptor *ladspa_descriptor(unsigned long index) { return index ? 0 : &about; }
