/* @TITLE@ as a CLAP plug-in; pulse @VERSION@ wrote it. */
#include "@NAME@_plugin.h"

#include "clap.h"

#include <string.h>

enum { BYPASS = 0, INPUTS = @INPUTS@ };

struct instance {
  clap_plugin plugin;
  struct sound sound;
  double rate_hz;
  int bypass;
};

static const struct port {
  const char *name;
  uint32_t channels;
} input_ports[] = {@INPUT_PORTS@}, output_port = {"Output", OUT_CHANNELS};
static const char *const features[] = {"audio-effect", @FEATURES@0};
static const clap_descriptor about = {{1, 1, 0}, "@URI@", @TEXT@, "pulse", "", "", "", "@VERSION@", "", features};

static struct instance *of(const clap_plugin *plugin) { return plugin->data; }

static bool plugin_init(const clap_plugin *plugin) {
  (void)plugin;
  return true;
}

static void plugin_deactivate(const clap_plugin *plugin) { end_sound(&of(plugin)->sound); }

static void plugin_destroy(const clap_plugin *plugin) {
  plugin_deactivate(plugin);
  free(of(plugin));
}

static bool plugin_activate(const clap_plugin *plugin, double rate_hz, uint32_t min_frames, uint32_t max_frames) {
  struct instance *one = of(plugin);
  (void)min_frames;
  (void)max_frames;
  end_sound(&one->sound);
  if (!begin_sound(&one->sound, rate_hz)) return false;
  @NAME@_blocks_bypass(one->sound.blocks, one->bypass);
  @NAME@_blocks_reset(one->sound.blocks);
  return true;
}

static bool plugin_start(const clap_plugin *plugin) { return of(plugin)->sound.memory != 0; }
static void plugin_stop(const clap_plugin *plugin) { (void)plugin; }
static void plugin_main_thread(const clap_plugin *plugin) { (void)plugin; }

static void plugin_reset(const clap_plugin *plugin) {
  if (of(plugin)->sound.memory) @NAME@_blocks_reset(of(plugin)->sound.blocks);
}

static void set_bypass(struct instance *one, double value) {
  one->bypass = value >= 0.5;
  if (one->sound.memory) @NAME@_blocks_bypass(one->sound.blocks, one->bypass);
}

static void apply(struct instance *one, const clap_events_in *events) {
  const uint32_t count = events ? events->size(events) : 0;
  uint32_t i;
  for (i = 0; i < count; ++i) {
    const clap_event *event = events->get(events, i);
    if (event->space == CLAP_CORE_EVENTS && event->type == CLAP_VALUE_EVENT) {
      const clap_value_event *set = (const clap_value_event *)(const void *)event;
      if (set->parameter == BYPASS) set_bypass(one, set->value);
    }
  }
}

static float *channel_of(const clap_buffer *buffer, uint32_t channel) {
  return buffer->data32 && channel < buffer->channels ? buffer->data32[channel] : 0;
}

static int32_t plugin_process(const clap_plugin *plugin, const clap_block *block) {
  struct instance *one = of(plugin);
  const float *inputs[IN_CHANNELS];
  float *outputs[OUT_CHANNELS];
  uint32_t i, k, count = 0;
  if (!one->sound.memory || !block->output_count || !block->outputs[0].data32) return CLAP_ERROR;
  apply(one, block->events_in);
  for (i = 0; i < INPUTS; ++i)
    for (k = 0; k < input_ports[i].channels; ++k)
      inputs[count++] = i < block->input_count ? channel_of(&block->inputs[i], k) : 0;
  for (k = 0; k < OUT_CHANNELS; ++k) outputs[k] = channel_of(&block->outputs[0], k);
  @NAME@_blocks_process(one->sound.blocks, inputs, outputs, block->frames);
  block->outputs[0].constant_mask = 0;
  return CLAP_CONTINUE;
}

static uint32_t port_count(const clap_plugin *plugin, bool is_input) {
  (void)plugin;
  return is_input ? INPUTS : 1;
}

static bool port_get(const clap_plugin *plugin, uint32_t index, bool is_input, clap_port *port) {
  const struct port *chosen;
  if (index >= port_count(plugin, is_input)) return false;
  chosen = is_input ? &input_ports[index] : &output_port;
  memset(port, 0, sizeof *port);
  port->id = index;
  strncpy(port->name, chosen->name, sizeof port->name - 1);
  port->flags = index == 0 ? CLAP_MAIN_PORT : 0;
  port->channels = chosen->channels;
  port->kind = chosen->channels == 1 ? CLAP_PORT_MONO : chosen->channels == 2 ? CLAP_PORT_STEREO : 0;
  port->in_place_pair = index == 0 && input_ports[0].channels == OUT_CHANNELS ? 0 : CLAP_NONE;
  return true;
}

static uint32_t parameter_count(const clap_plugin *plugin) {
  (void)plugin;
  return 1;
}

static bool parameter_describe(const clap_plugin *plugin, uint32_t index, clap_parameter *parameter) {
  (void)plugin;
  if (index) return false;
  memset(parameter, 0, sizeof *parameter);
  parameter->id = BYPASS;
  parameter->flags = CLAP_STEPPED | CLAP_BYPASS | CLAP_AUTOMATABLE;
  strcpy(parameter->name, "Bypass");
  parameter->max_value = 1;
  return true;
}

static bool parameter_get(const clap_plugin *plugin, uint32_t id, double *value) {
  if (id != BYPASS) return false;
  *value = of(plugin)->bypass;
  return true;
}

static bool parameter_to_text(const clap_plugin *plugin, uint32_t id, double value, char *text, uint32_t room) {
  (void)plugin;
  if (id != BYPASS || room < 4) return false;
  strcpy(text, value >= 0.5 ? "on" : "off");
  return true;
}

static bool parameter_from_text(const clap_plugin *plugin, uint32_t id, const char *text, double *value) {
  (void)plugin;
  if (id != BYPASS || (strcmp(text, "on") && strcmp(text, "off"))) return false;
  *value = !strcmp(text, "on");
  return true;
}

static void parameter_flush(const clap_plugin *plugin, const clap_events_in *events, const void *out) {
  (void)out;
  apply(of(plugin), events);
}

static uint32_t latency_get(const clap_plugin *plugin) {
  return of(plugin)->sound.memory ? (uint32_t)@NAME@_blocks_delay(of(plugin)->sound.blocks) : 0;
}

static bool state_save(const clap_plugin *plugin, const clap_stream_out *stream) {
  const uint8_t bypass = of(plugin)->bypass != 0;
  return stream->write(stream, &bypass, 1) == 1;
}

static bool state_load(const clap_plugin *plugin, const clap_stream_in *stream) {
  uint8_t bypass;
  if (stream->read(stream, &bypass, 1) != 1 || bypass > 1) return false;
  set_bypass(of(plugin), bypass);
  return true;
}

static const clap_ports ports = {port_count, port_get};
static const clap_parameters parameters = {parameter_count,   parameter_describe,  parameter_get,
                                           parameter_to_text, parameter_from_text, parameter_flush};
static const clap_latency latency = {latency_get};
static const clap_state state = {state_save, state_load};

static const void *plugin_extension(const clap_plugin *plugin, const char *id) {
  (void)plugin;
  if (!strcmp(id, "clap.audio-ports")) return &ports;
  if (!strcmp(id, "clap.params")) return &parameters;
  if (!strcmp(id, "clap.latency")) return &latency;
  if (!strcmp(id, "clap.state")) return &state;
  return 0;
}

static uint32_t factory_count(const clap_factory *factory) {
  (void)factory;
  return 1;
}

static const clap_descriptor *factory_describe(const clap_factory *factory, uint32_t index) {
  (void)factory;
  return index ? 0 : &about;
}

static const clap_plugin *factory_create(const clap_factory *factory, const void *host, const char *id) {
  const clap_plugin callbacks = {
      &about,       0,           plugin_init,  plugin_destroy, plugin_activate,  plugin_deactivate,
      plugin_start, plugin_stop, plugin_reset, plugin_process, plugin_extension, plugin_main_thread};
  struct instance *one = strcmp(id, about.id) ? 0 : calloc(1, sizeof *one);
  (void)factory;
  (void)host;
  if (!one) return 0;
  one->plugin = callbacks;
  one->plugin.data = one;
  return &one->plugin;
}

static const clap_factory factory = {factory_count, factory_describe, factory_create};

static bool module_init(const char *path) {
  (void)path;
  return true;
}

static void module_deinit(void) {}

static const void *module_factory(const char *id) { return strcmp(id, "clap.plugin-factory") ? 0 : &factory; }

extern ENTRY const clap_module clap_entry;
const clap_module clap_entry = {{1, 1, 0}, module_init, module_deinit, module_factory};
