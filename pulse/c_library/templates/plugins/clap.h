/* What a plug-in needs of the CLAP interface (free-audio, MIT licence), version 1.1, in our own words. */
#include <stdbool.h>
#include <stdint.h>

typedef struct {
  uint32_t major, minor, revision;
} clap_version;

typedef struct {
  clap_version version_of_clap;
  const char *id, *name, *vendor, *url, *manual_url, *support_url, *version, *description;
  const char *const *features;
} clap_descriptor;

typedef struct {
  uint32_t size, time;
  uint16_t space, type;
  uint32_t flags;
} clap_event;

typedef struct {
  clap_event head;
  uint32_t parameter;
  void *cookie;
  int32_t note;
  int16_t port, channel, key;
  double value;
} clap_value_event;

typedef struct clap_events_in {
  void *context;
  uint32_t (*size)(const struct clap_events_in *);
  const clap_event *(*get)(const struct clap_events_in *, uint32_t index);
} clap_events_in;

typedef struct {
  float **data32;
  double **data64;
  uint32_t channels, latency;
  uint64_t constant_mask;
} clap_buffer;

typedef struct {
  int64_t steady_time;
  uint32_t frames;
  const void *transport;
  const clap_buffer *inputs;
  clap_buffer *outputs;
  uint32_t input_count, output_count;
  const clap_events_in *events_in;
  const void *events_out;
} clap_block;

typedef struct clap_plugin {
  const clap_descriptor *about;
  void *data;
  bool (*init)(const struct clap_plugin *);
  void (*destroy)(const struct clap_plugin *);
  bool (*activate)(const struct clap_plugin *, double rate_hz, uint32_t min_frames, uint32_t max_frames);
  void (*deactivate)(const struct clap_plugin *);
  bool (*start_processing)(const struct clap_plugin *);
  void (*stop_processing)(const struct clap_plugin *);
  void (*reset)(const struct clap_plugin *);
  int32_t (*process)(const struct clap_plugin *, const clap_block *);
  const void *(*get_extension)(const struct clap_plugin *, const char *id);
  void (*on_main_thread)(const struct clap_plugin *);
} clap_plugin;

typedef struct clap_factory {
  uint32_t (*count)(const struct clap_factory *);
  const clap_descriptor *(*describe)(const struct clap_factory *, uint32_t index);
  const clap_plugin *(*create)(const struct clap_factory *, const void *host, const char *id);
} clap_factory;

typedef struct {
  clap_version version_of_clap;
  bool (*init)(const char *path);
  void (*deinit)(void);
  const void *(*get_factory)(const char *id);
} clap_module;

typedef struct {
  uint32_t id;
  char name[256];
  uint32_t flags, channels;
  const char *kind;
  uint32_t in_place_pair;
} clap_port;

typedef struct {
  uint32_t (*count)(const clap_plugin *, bool is_input);
  bool (*get)(const clap_plugin *, uint32_t index, bool is_input, clap_port *);
} clap_ports;

typedef struct {
  uint32_t id, flags;
  void *cookie;
  char name[256], module[1024];
  double min_value, max_value, initial;
} clap_parameter;

typedef struct {
  uint32_t (*count)(const clap_plugin *);
  bool (*describe)(const clap_plugin *, uint32_t index, clap_parameter *);
  bool (*get)(const clap_plugin *, uint32_t id, double *value);
  bool (*to_text)(const clap_plugin *, uint32_t id, double value, char *text, uint32_t room);
  bool (*from_text)(const clap_plugin *, uint32_t id, const char *text, double *value);
  void (*flush)(const clap_plugin *, const clap_events_in *, const void *events_out);
} clap_parameters;

typedef struct {
  uint32_t (*get)(const clap_plugin *);
} clap_latency;

typedef struct {
  void *context;
  int64_t (*write)(const void *stream, const void *data, uint64_t bytes);
} clap_stream_out;

typedef struct {
  void *context;
  int64_t (*read)(const void *stream, void *data, uint64_t bytes);
} clap_stream_in;

typedef struct {
  bool (*save)(const clap_plugin *, const clap_stream_out *);
  bool (*load)(const clap_plugin *, const clap_stream_in *);
} clap_state;

enum { CLAP_VALUE_EVENT = 5, CLAP_CORE_EVENTS = 0, CLAP_ERROR = 0, CLAP_CONTINUE = 1, CLAP_MAIN_PORT = 1 };
enum { CLAP_STEPPED = 1, CLAP_BYPASS = 1 << 4, CLAP_AUTOMATABLE = 1 << 5 };
#define CLAP_NONE UINT32_MAX
#define CLAP_PORT_MONO "mono"
#define CLAP_PORT_STEREO "stereo"
