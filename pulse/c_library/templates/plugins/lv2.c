/* @TITLE@ as an LV2 plug-in; pulse @VERSION@ wrote it. The interface is that of LV2's core, in our own words. */
#include "@NAME@_ports.h"

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

static void *instantiate(const descriptor *about, double rate, const char *folder, const void *const *features) {
  (void)about;
  (void)folder;
  (void)features;
  return make_instance(rate);
}

static void connect_port(void *handle, uint32_t port, void *data) { set_port(handle, port, data); }
static void run(void *handle, uint32_t frames) { process(handle, frames, 0); }

static const descriptor about = {"@URI@", instantiate, connect_port, activate, run, 0, cleanup, 0};

ENTRY const descriptor *lv2_descriptor(uint32_t index);
ENTRY const descriptor *lv2_descriptor(uint32_t index) { return index ? 0 : &about; }
