/* @TITLE@ in blocks of any size and at any rate; pulse @VERSION@ wrote it. C99, without allocation and libm. */
#include "@NAME@_blocks.h"

#include <stdint.h>

void *memcpy(void *, const void *, size_t);
void *memset(void *, int, size_t);

enum { HALF_FRAMES = @HALF_FRAMES@, PHASES = @PHASES@, LANES = 16, UNIT_BITS = 20, MAX_RATIO = @UPPER@_MAX_RATIO };
enum { SOUND_OUT = @SOUND_OUT@, INPUTS = @INPUTS@, OUTPUTS = @OUTPUTS@, RATE_HZ = @RATE_HZ@, CHUNK = @UPPER@_CHUNK };
enum { IN_CHANNELS = @UPPER@_INPUT_CHANNELS, OUT_CHANNELS = @UPPER@_OUTPUT_CHANNELS };
enum { DRY_CHANNELS = @DRY_CHANNELS@ }; /* of the first input */
#define STOP_DB @STOP_DB@
#define MAX_PERIOD (INT64_C(1) << 22)
#define PI 3.14159265358979323846

/* The resampler is compiled code of pulse, which reads and writes these words; count and step are of the input. */
struct resampler {
  int64_t nominal, step, unit, fraction, first, end, taps, phases, window, table, history;
};
void *@RESAMPLE@(int64_t state, int64_t source, int64_t count, int64_t target, int64_t frames);

struct shape { /* of a filter between two rates */
  int half, taps, phases;
};

struct ring {
  float *frames;
  int64_t room, first, count;
};

struct layout { /* of a channel in a pulse: its port, its first value, and the step to the next one */
  int port, first, step;
};
static const struct layout in_layouts[IN_CHANNELS] = {@IN_LAYOUTS@};

struct @NAME@_blocks {
  @NAME@_stream *stream;
  const @NAME@_port *ports;
  int rate_hz, pulse, preroll, waiting, delay, bypass;
  double share, change; /* of the sound that is let through, and by how much it changes from frame to frame */
  double bad_samples, bad_pulses;
  struct shape inward, outward;
  struct resampler in[IN_CHANNELS], out[OUT_CHANNELS];
  struct ring dry[OUT_CHANNELS], wet[OUT_CHANNELS]; /* the sound that came, as late as that of the model */
  float *queue[IN_CHANNELS], *samples, *resampled;
  int queued, room; /* frames that wait for a pulse */
  float *pulses[INPUTS];
  void *results[OUTPUTS];
};

static int64_t ceil_div(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }
static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static struct shape shape_of(int rate_in, int rate_out) {
  struct shape shape;
  const int64_t lower = rate_in > rate_out ? rate_out : rate_in;
  shape.half = (int)ceil_div((int64_t)HALF_FRAMES * rate_in, lower);
  shape.taps = (2 * shape.half + LANES - 1) / LANES * LANES;
  shape.phases = (int)ceil_div((int64_t)PHASES * lower, rate_in);
  return shape;
}

static double sine_of_half_turns(double x) { /* sin(PI * x) */
  double turn, square, term, sum;
  int64_t whole = (int64_t)(x < 0 ? x - 0.5 : x + 0.5);
  int i;
  turn = PI * (x - (double)whole);
  square = turn * turn;
  term = sum = turn;
  for (i = 2; i < 24; i += 2) {
    term *= -square / (i * (i + 1));
    sum += term;
  }
  return whole % 2 ? -sum : sum;
}

static double bessel(double square) { /* I0 of the root of 4 * square */
  double term = 1, sum = 1;
  int i;
  for (i = 1; i < 60; ++i) {
    term *= square / ((double)i * i);
    sum += term;
  }
  return sum;
}

static void design(const struct shape *shape, int rate_in, int rate_out, float *table) {
  const double frames = rate_in > rate_out ? (double)rate_in / rate_out : 1.0;
  const double beta = 0.1102 * (STOP_DB - 8.7);
  const double cutoff = (1 - (STOP_DB - 7.95) / (14.36 * 2 * shape->half / frames)) / frames;
  int row, tap;
  for (row = 0; row <= shape->phases; ++row) {
    float *target = table + (size_t)row * (size_t)shape->taps;
    double sum = 0;
    int pass;
    for (pass = 0; pass < 2; ++pass) /* the sum first: all coefficients of a row add up to 1 */
      for (tap = 0; tap < shape->taps; ++tap) {
        const double behind = shape->half - shape->taps + 1 + tap - (double)row / shape->phases;
        const double part = behind / shape->half, place = cutoff * behind;
        double value = 0;
        if (part >= -1 && part <= 1) {
          value = bessel(beta * beta * (1 - part * part) / 4);
          if (place != 0) value *= sine_of_half_turns(place) / (PI * place);
        }
        if (pass)
          target[tap] = (float)(value / sum);
        else
          sum += value;
      }
  }
}

static void reset_resampler(struct resampler *one, const struct shape *shape) {
  one->first = one->fraction = 0;
  one->end = shape->taps - shape->half - 1;
  memset((float *)(uintptr_t)one->history, 0, (size_t)one->end * sizeof(float));
}

static void set_resampler(struct resampler *one, const struct shape *shape, int rate_in, int rate_out, float *table,
                          float *history, int largest) {
  one->nominal = one->step = (int64_t)rate_in << UNIT_BITS;
  one->unit = (int64_t)rate_out << UNIT_BITS;
  one->taps = shape->taps;
  one->phases = shape->phases;
  one->window = shape->taps + largest;
  one->table = (int64_t)(uintptr_t)table;
  one->history = (int64_t)(uintptr_t)history;
}

static int64_t ready_after(const struct resampler *one, int64_t frames) {
  const int64_t beyond = one->end + frames - one->first - one->taps + 1;
  return beyond <= 0 ? 0 : (beyond * one->unit - one->fraction + one->step - 1) / one->step;
}

static int64_t resample(struct resampler *one, const float *source, int64_t count, float *target) {
  const int64_t frames = ready_after(one, count);
  @RESAMPLE@((int64_t)(uintptr_t)one, (int64_t)(uintptr_t)source, count, (int64_t)(uintptr_t)target, frames);
  return frames;
}

static int64_t in_host_frames(int64_t frames, int rate_hz) { return ceil_div(frames * rate_hz, RATE_HZ); }
static int64_t floor_div(int64_t a, int64_t b) { return -ceil_div(-a, b); }

/* The most that the output taken can be ahead of the output made, if so many frames of silence come before the
   model's input. */
static int64_t longest_wait(int rate_hz, int pulse, int block, int ahead_in, int ahead_out, int preroll) {
  const int64_t host = rate_hz, hz = RATE_HZ;
  const int64_t period = host * pulse / gcd(host * pulse, hz), step = gcd(block, period);
  int64_t arrived, wait = 0;
  if (rate_hz == RATE_HZ) return pulse - gcd(pulse, block);
  if (period / step > MAX_PERIOD) /* a bound */
    return 1 + floor_div(ahead_in * hz + (pulse - 1 + ahead_out - preroll) * host, hz);
  for (arrived = 0; arrived < period; arrived += step) {
    const int64_t resampled = ceil_div((arrived - ahead_in) * hz, host) + preroll;
    const int64_t ready = ceil_div((floor_div(resampled, pulse) * pulse - ahead_out) * host, hz);
    if (arrived - ready > wait) wait = arrived - ready;
  }
  return wait;
}

static const @NAME@_port *port_of(const @NAME@_blocks *blocks, int output) { return blocks->ports + INPUTS + output; }

/* Sets sizes and delays. */
static void plan(@NAME@_blocks *blocks, int rate_hz, int block) {
  int64_t wait, other, delay;
  memset(blocks, 0, sizeof *blocks);
  blocks->ports = @NAME@_ports(0);
  blocks->rate_hz = rate_hz;
  blocks->pulse = (int)blocks->ports[0].frames;
  blocks->inward = shape_of(rate_hz, RATE_HZ);
  blocks->outward = shape_of(RATE_HZ, rate_hz);
  blocks->room = blocks->pulse + (int)ceil_div((int64_t)CHUNK * RATE_HZ, rate_hz) + 2;
  wait = longest_wait(rate_hz, blocks->pulse, block, blocks->inward.half, blocks->outward.half, 0);
  if (rate_hz != RATE_HZ) {
    const int ahead = (int)(ceil_div((int64_t)blocks->inward.half * RATE_HZ, rate_hz) % blocks->pulse);
    other = longest_wait(rate_hz, blocks->pulse, block, blocks->inward.half, blocks->outward.half, ahead);
    if (other + in_host_frames(ahead, rate_hz) < wait) {
      wait = other;
      blocks->preroll = ahead;
    }
  }
  blocks->waiting = (int)wait;
  delay = blocks->preroll + (SOUND_OUT < 0 ? 0 : (int64_t)port_of(blocks, SOUND_OUT)->delay);
  blocks->delay = blocks->waiting + (int)((delay * rate_hz * 2 + RATE_HZ) / (2 * RATE_HZ));
  blocks->change = 100.0 / rate_hz;
}

static size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

static void *part(unsigned char *memory, size_t *at, size_t bytes) { /* null without memory: only counts */
  void *place = memory ? memory + *at : 0;
  *at += aligned(bytes);
  return place;
}

/* Lays everything out after the struct; returns how many bytes it all takes. */
static size_t lay_out(@NAME@_blocks *blocks, unsigned char *memory, void **stream) {
  const int differs = blocks->rate_hz != RATE_HZ;
  const size_t inward = differs ? (size_t)(blocks->inward.phases + 1) * (size_t)blocks->inward.taps : 0;
  const size_t outward = differs ? (size_t)(blocks->outward.phases + 1) * (size_t)blocks->outward.taps : 0;
  const int largest = blocks->pulse > CHUNK ? blocks->pulse : CHUNK;
  size_t at = aligned(sizeof *blocks);
  float *in_table = part(memory, &at, inward * sizeof(float)), *out_table = part(memory, &at, outward * sizeof(float));
  int i;
  if (memory && differs) {
    design(&blocks->inward, blocks->rate_hz, RATE_HZ, in_table);
    design(&blocks->outward, RATE_HZ, blocks->rate_hz, out_table);
  }
  for (i = 0; i < IN_CHANNELS; ++i) {
    const size_t window = differs ? 2 * (size_t)(blocks->inward.taps + largest) : 0;
    float *history = part(memory, &at, window * sizeof(float));
    set_resampler(&blocks->in[i], &blocks->inward, blocks->rate_hz, RATE_HZ, in_table, history, largest);
    blocks->queue[i] = part(memory, &at, (size_t)blocks->room * sizeof(float));
  }
  for (i = 0; i < INPUTS; ++i) blocks->pulses[i] = part(memory, &at, blocks->ports[i].bytes);
  for (i = 0; i < OUT_CHANNELS; ++i) {
    const size_t window = differs ? 2 * (size_t)(blocks->outward.taps + largest) : 0;
    float *history = part(memory, &at, window * sizeof(float));
    set_resampler(&blocks->out[i], &blocks->outward, RATE_HZ, blocks->rate_hz, out_table, history, largest);
    blocks->dry[i].room = blocks->delay + CHUNK;
    blocks->dry[i].frames = part(memory, &at, (size_t)blocks->dry[i].room * sizeof(float));
    blocks->wet[i].room = blocks->waiting + CHUNK + 2 * in_host_frames(blocks->pulse, blocks->rate_hz) + 2;
    blocks->wet[i].frames = part(memory, &at, (size_t)blocks->wet[i].room * sizeof(float));
  }
  blocks->samples = part(memory, &at, (size_t)blocks->pulse * sizeof(float));
  blocks->resampled = part(memory, &at, (size_t)(in_host_frames(blocks->pulse, blocks->rate_hz) + 1) * sizeof(float));
  for (i = 0; i < OUTPUTS; ++i) blocks->results[i] = part(memory, &at, port_of(blocks, i)->bytes);
  *stream = part(memory, &at, @NAME@_size());
  return at;
}

static int takes(int rate_hz, int block) {
  return block > 0 && rate_hz > 0 && rate_hz <= (int64_t)MAX_RATIO * RATE_HZ && RATE_HZ <= (int64_t)MAX_RATIO * rate_hz;
}

static void silence(struct ring *ring, int64_t count) {
  memset(ring->frames, 0, (size_t)count * sizeof(float));
  ring->first = 0;
  ring->count = count;
}

static void put(struct ring *ring, const float *source, int64_t count) {
  int64_t at = ring->first + ring->count, i;
  for (i = 0; i < count; ++i) ring->frames[(at + i) % ring->room] = source[i];
  ring->count += count;
}

static float get(struct ring *ring) {
  const float frame = ring->frames[ring->first];
  if (++ring->first == ring->room) ring->first = 0;
  --ring->count;
  return frame;
}

size_t @NAME@_blocks_size(int rate_hz, int block_frames) {
  @NAME@_blocks blocks;
  void *stream;
  if (!takes(rate_hz, block_frames)) return 0;
  plan(&blocks, rate_hz, block_frames);
  return lay_out(&blocks, 0, &stream);
}

int @NAME@_blocks_init(void *memory, size_t bytes, int rate_hz, int block_frames, @NAME@_blocks **result) {
  @NAME@_blocks *blocks = (@NAME@_blocks *)memory;
  void *stream;
  int code;
  if (!memory || !result) return @UPPER@_NULL;
  if ((uintptr_t)memory % 64) return @UPPER@_ALIGNMENT;
  if (!takes(rate_hz, block_frames)) return @UPPER@_LENGTH;
  if (bytes < @NAME@_blocks_size(rate_hz, block_frames)) return @UPPER@_MEMORY;
  plan(blocks, rate_hz, block_frames);
  lay_out(blocks, (unsigned char *)memory, &stream);
  code = @NAME@_init(stream, @NAME@_size(), &blocks->stream);
  if (code) return code;
  @NAME@_blocks_reset(blocks);
  *result = blocks;
  return @UPPER@_OK;
}

void @NAME@_blocks_reset(@NAME@_blocks *blocks) {
  int i;
  @NAME@_reset(blocks->stream);
  for (i = 0; i < IN_CHANNELS; ++i) {
    if (blocks->rate_hz != RATE_HZ) reset_resampler(&blocks->in[i], &blocks->inward);
    memset(blocks->queue[i], 0, (size_t)blocks->preroll * sizeof(float));
  }
  for (i = 0; i < OUT_CHANNELS; ++i) {
    if (blocks->rate_hz != RATE_HZ) reset_resampler(&blocks->out[i], &blocks->outward);
    silence(&blocks->dry[i], blocks->delay);
    silence(&blocks->wet[i], blocks->waiting);
  }
  blocks->queued = blocks->preroll;
  blocks->share = blocks->bypass;
}

int @NAME@_blocks_delay(const @NAME@_blocks *blocks) { return blocks->delay; }

void @NAME@_blocks_bypass(@NAME@_blocks *blocks, int bypass) { blocks->bypass = bypass != 0; }

/* The channel of the first input that is let through as a channel of the output: the last one is repeated. */
static int dry_channel(int output) { return output < DRY_CHANNELS ? output : DRY_CHANNELS - 1; }

void @NAME@_blocks_feed(@NAME@_blocks *blocks, const float *const inputs[], int frames) {
  int64_t ready = frames; /* for the model */
  int i, k;
  for (i = 0; i < IN_CHANNELS; ++i) {
    float sound[CHUNK];
    for (k = 0; k < frames; ++k) {
      const float frame = inputs[i] ? inputs[i][k] : 0;
      const int is_number = frame - frame == 0;
      sound[k] = is_number ? frame : 0;
      blocks->bad_samples += !is_number;
    }
    for (k = 0; k < OUT_CHANNELS; ++k)
      if (dry_channel(k) == i) put(&blocks->dry[k], sound, frames);
    if (blocks->rate_hz == RATE_HZ)
      memcpy(blocks->queue[i] + blocks->queued, sound, (size_t)frames * sizeof(float));
    else
      ready = resample(&blocks->in[i], sound, frames, blocks->queue[i] + blocks->queued);
  }
  blocks->queued += (int)ready;
}

/* Takes a pulse out of the queues, laid out as the model's inputs are. */
static void fill_pulses(@NAME@_blocks *blocks) {
  int i, k;
  for (i = 0; i < IN_CHANNELS; ++i) {
    const struct layout *layout = &in_layouts[i];
    float *target = blocks->pulses[layout->port] + layout->first, *queue = blocks->queue[i];
    for (k = 0; k < blocks->pulse; ++k) target[k * layout->step] = queue[k];
    for (k = 0; k < blocks->queued - blocks->pulse; ++k) queue[k] = queue[blocks->pulse + k];
  }
  blocks->queued -= blocks->pulse;
}

#if @SOUND_OUT@ >= 0
static const struct layout out_layouts[OUT_CHANNELS] = {@OUT_LAYOUTS@};

/* Puts the sound of a pulse into the rings; its first frames are before the sound begins, and become silent. */
static void play(@NAME@_blocks *blocks, int silent) {
  int i, k;
  for (i = 0; i < OUT_CHANNELS; ++i) {
    const struct layout *layout = &out_layouts[i];
    float *sound = (float *)blocks->results[SOUND_OUT] + layout->first, *samples = blocks->samples;
    for (k = 0; k < silent; ++k) sound[k * layout->step] = 0;
    for (k = 0; k < blocks->pulse; ++k) samples[k] = sound[k * layout->step];
    if (blocks->rate_hz == RATE_HZ)
      put(&blocks->wet[i], samples, blocks->pulse);
    else
      put(&blocks->wet[i], blocks->resampled, resample(&blocks->out[i], samples, blocks->pulse, blocks->resampled));
  }
}
#endif

int @NAME@_blocks_run(@NAME@_blocks *blocks) {
  const void *inputs[INPUTS];
  int code, i;
  if (blocks->queued < blocks->pulse) return 0;
  fill_pulses(blocks);
  for (i = 0; i < INPUTS; ++i) inputs[i] = blocks->pulses[i];
  code = @NAME@_step(blocks->stream, inputs, blocks->results);
  if (code) { /* it has no result for such sound, or has had all frames that it can take: a new stream begins */
    ++blocks->bad_pulses;
    for (i = 0; i < OUTPUTS; ++i) memset(blocks->results[i], 0, port_of(blocks, i)->bytes);
    @NAME@_reset(blocks->stream);
  }
#if @SOUND_OUT@ >= 0
  {
    size_t first = 0, valid = @NAME@_valid(blocks->stream, SOUND_OUT, &first);
    if (!valid) first = port_of(blocks, SOUND_OUT)->frames;
    play(blocks, code ? 0 : (int)first);
  }
#endif
  return 1;
}

void @NAME@_blocks_take(@NAME@_blocks *blocks, float *const outputs[], int frames) {
  int i, k;
  for (i = 0; i < frames; ++i) {
    if (blocks->share < blocks->bypass) {
      blocks->share = blocks->share + blocks->change < 1 ? blocks->share + blocks->change : 1;
    } else if (blocks->share > blocks->bypass) {
      blocks->share = blocks->share > blocks->change ? blocks->share - blocks->change : 0;
    }
    for (k = 0; k < OUT_CHANNELS; ++k) {
      const float dry = get(&blocks->dry[k]);
      const float wet = blocks->wet[k].count > 0 ? get(&blocks->wet[k]) : 0;
      if (!outputs[k]) continue;
      if (blocks->share == 0)
        outputs[k][i] = wet;
      else if (blocks->share == 1)
        outputs[k][i] = dry;
      else
        outputs[k][i] = (float)(wet + (dry - wet) * blocks->share);
    }
  }
}

void @NAME@_blocks_process(@NAME@_blocks *blocks, const float *const inputs[], float *const outputs[], size_t frames) {
  size_t done;
  int i;
  for (done = 0; done < frames; done += CHUNK) {
    const int count = frames - done < CHUNK ? (int)(frames - done) : CHUNK;
    const float *sources[IN_CHANNELS];
    float *targets[OUT_CHANNELS];
    for (i = 0; i < IN_CHANNELS; ++i) sources[i] = inputs[i] ? inputs[i] + done : 0;
    for (i = 0; i < OUT_CHANNELS; ++i) targets[i] = outputs[i] ? outputs[i] + done : 0;
    @NAME@_blocks_feed(blocks, sources, count);
    while (@NAME@_blocks_run(blocks)) continue;
    @NAME@_blocks_take(blocks, targets, count);
  }
}

int @NAME@_blocks_sound_output(void) { return SOUND_OUT; }

const void *@NAME@_blocks_output(const @NAME@_blocks *blocks, int output) {
  return output < 0 || output >= OUTPUTS ? 0 : blocks->results[output];
}

const @NAME@_stream *@NAME@_blocks_stream(const @NAME@_blocks *blocks) { return blocks->stream; }

void @NAME@_blocks_counters(const @NAME@_blocks *blocks, double *samples, double *pulses) {
  if (samples) *samples = blocks->bad_samples;
  if (pulses) *pulses = blocks->bad_pulses;
}
