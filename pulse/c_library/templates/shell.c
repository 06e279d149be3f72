/* @TITLE@ as a C library; pulse @VERSION@ wrote it. C99, without allocation, files or floats. */
#include "@NAME@.h"

#include <stdint.h>
#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
#endif
#if defined(__GNUC__) && !defined(__wasm__)
#define EXPORTED __attribute__((visibility("default")))
#define HIDDEN __attribute__((visibility("hidden")))
#else
#define EXPORTED
#define HIDDEN
#endif

void *memcpy(void *, const void *, size_t);
void *memset(void *, int, size_t);

#if defined(__arm__) && defined(__GNUC__) /* what a compiler's division calls for 0, which no row divides by */
__attribute__((weak, visibility("hidden"))) int __aeabi_idiv0(int result) { return result; }
__attribute__((weak, visibility("hidden"))) int64_t __aeabi_ldiv0(int64_t result) { return result; }
#endif

@DATA@

struct @NAME@_stream {
  int64_t kind;     /* KIND; anything else is no stream */
  int64_t pulses;   /* that have run */
  int64_t end;      /* frames of the whole stream; -1 as long as it continues */
  int64_t last;     /* the number of the last pulse; -1 likewise */
  int64_t failed;   /* whether a value had no result */
  int64_t bases[3]; /* of weights, state and arena */
};

enum { WEIGHTS, STATE, ARENA };
enum { STREAM_BYTES = 64, ALIGNMENT = 64, SNAPSHOT_BYTES = 40 };
#define KIND INT64_C(0x6d61657274732f31)

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }
static int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max_i64(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t clamp_i64(int64_t a, int64_t low, int64_t high) { return min_i64(max_i64(a, low), high); }

@LENGTHS@

static void run_rows(const int64_t *bases) {
@RUN@
}

static void run(@NAME@_stream *stream) { /* denormal numbers count as zero in the meantime */
#if defined(__x86_64__) || defined(_M_X64)
  const unsigned int mode = _mm_getcsr();
  _mm_setcsr(mode | 0x8040);
  run_rows(stream->bases);
  _mm_setcsr(mode);
#elif defined(__aarch64__) && defined(__GNUC__)
  uint64_t mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  __asm__ volatile("msr fpcr, %0" : : "r"(mode | 1 << 24) : "memory");
  run_rows(stream->bases);
  __asm__ volatile("msr fpcr, %0" : : "r"(mode) : "memory");
#else
  run_rows(stream->bases);
#endif
}

static unsigned char *region(const @NAME@_stream *stream, int which) {
  return (unsigned char *)(uintptr_t)stream->bases[which];
}

static int64_t word_at(const @NAME@_stream *stream, int64_t at) {
  int64_t word;
  memcpy(&word, region(stream, STATE) + at, sizeof word);
  return word;
}

static void set_word(const @NAME@_stream *stream, int64_t at, int64_t word) {
  memcpy(region(stream, STATE) + at, &word, sizeof word);
}

static int64_t total(int port, int64_t end) { return max_i64(0, length(port, end)); }

static void copy_run(unsigned char *to, const unsigned char *from, size_t bytes) {
  if (bytes == 4)
    memcpy(to, from, 4);
  else
    memcpy(to, from, bytes);
}

/* Moves `count` frames between the place of a tensor, from frame `at` on, and C-contiguous memory of `frames` frames,
   from frame `first` on. A tensor without frames is moved as a whole. Without other memory, it is filled with zeros. */
static void move(const @NAME@_stream *stream, const struct place *place, int64_t at, unsigned char *other,
                 int64_t frames, int64_t first, int64_t count, int inward) {
  int64_t sizes[AXES], here[AXES], there[AXES], index[AXES];
  int64_t run = place->width, step = place->width;
  unsigned char *tensor = region(stream, place->region) + place->offset;
  int axes = 0, axis;
  for (axis = place->axes - 1; axis >= 0; --axis) {
    const int time = axis == place->axis;
    const int64_t size = time ? count : place->dims[axis];
    if (size == 0) return;
    if (time) {
      tensor += at * place->steps[axis];
      if (other) other += first * step;
    }
    if (size != 1) {
      if (axes == 0 && place->steps[axis] == run && step == run) {
        run *= size;
      } else {
        sizes[axes] = size;
        here[axes] = place->steps[axis];
        there[axes] = step;
        index[axes] = 0;
        ++axes;
      }
    }
    step *= time ? frames : place->dims[axis];
  }
  for (;;) {
    if (!other)
      memset(tensor, 0, (size_t)run);
    else if (inward)
      copy_run(tensor, other, (size_t)run);
    else
      copy_run(other, tensor, (size_t)run);
    for (axis = 0; axis < axes; ++axis) {
      tensor += here[axis];
      if (other) other += there[axis];
      if (++index[axis] < sizes[axis]) break;
      tensor -= here[axis] * sizes[axis];
      if (other) other -= there[axis] * sizes[axis];
      index[axis] = 0;
    }
    if (axis == axes) return;
  }
}

static int check(const @NAME@_stream *stream) {
  if (!stream) return @UPPER@_NULL;
  if ((uintptr_t)stream % ALIGNMENT) return @UPPER@_ALIGNMENT;
  return stream->kind == KIND ? @UPPER@_OK : @UPPER@_STREAM;
}

@WEIGHTS@
static int faulted(const @NAME@_stream *stream) { return FAULTS_AT >= 0 && word_at(stream, FAULTS_AT) != 0; }

static int advance(@NAME@_stream *stream, void *const outputs[]) {
  int i;
  run(stream);
  ++stream->pulses;
  if (faulted(stream)) {
    stream->failed = 1;
    return @UPPER@_FAULT;
  }
  for (i = 0; i < OUTPUTS; ++i)
    if (outputs[i])
      move(stream, &places[INPUTS + i], 0, (unsigned char *)outputs[i], places[INPUTS + i].frames, 0,
           places[INPUTS + i].frames, 0);
  return @UPPER@_OK;
}

EXPORTED size_t @NAME@_size(void) { return STREAM_BYTES + STATE_ROOM + ARENA_BYTES; }
EXPORTED size_t @NAME@_alignment(void) { return ALIGNMENT; }
EXPORTED size_t @NAME@_snapshot_size(void) { return SNAPSHOT_BYTES + STATE_BYTES; }

EXPORTED const @NAME@_port *@NAME@_ports(int *count) {
  if (count) *count = INPUTS + OUTPUTS;
  return ports;
}

EXPORTED int @NAME@_reset(@NAME@_stream *stream) {
  const int code = check(stream);
  int i;
  if (code) return code;
  stream->pulses = stream->failed = 0;
  stream->end = stream->last = -1;
  memset(region(stream, STATE), 0, STATE_BYTES);
  for (i = 0; i < PIECES; ++i)
    memcpy(region(stream, STATE) + pieces[i].to, initial + pieces[i].from, (size_t)pieces[i].bytes);
  return @UPPER@_OK;
}

EXPORTED int @NAME@_init(void *memory, size_t bytes, @NAME@_stream **result) {
  @NAME@_stream *stream = (@NAME@_stream *)memory;
  if (!memory || !result) return @UPPER@_NULL;
  if ((uintptr_t)memory % ALIGNMENT) return @UPPER@_ALIGNMENT;
  if (bytes < @NAME@_size()) return @UPPER@_MEMORY;
  memset(memory, 0, @NAME@_size());
  stream->kind = KIND;
  stream->bases[WEIGHTS] = first_weights();
  stream->bases[STATE] = (int64_t)((uintptr_t)memory + STREAM_BYTES);
  stream->bases[ARENA] = (int64_t)((uintptr_t)memory + STREAM_BYTES + STATE_ROOM);
  *result = stream;
  return @NAME@_reset(stream);
}

EXPORTED int @NAME@_step(@NAME@_stream *stream, const void *const inputs[], void *const outputs[]) {
  const int code = check(stream);
  int i;
  if (code) return code;
  if (!inputs || !outputs) return @UPPER@_NULL;
  for (i = 0; i < INPUTS; ++i)
    if (!inputs[i]) return @UPPER@_NULL;
  if (!stream->bases[WEIGHTS]) return @UPPER@_WEIGHTS;
  if (stream->failed) return @UPPER@_FAULT;
  if (stream->end >= 0) return @UPPER@_ENDED;
  if (stream->pulses >= LIMIT / PULSE) return @UPPER@_LENGTH;
  for (i = 0; i < INPUTS; ++i)
    move(stream, &places[i], 0, (unsigned char *)(uintptr_t)inputs[i], places[i].frames, 0, places[i].frames, 1);
  return advance(stream, outputs);
}

/* The fewest frames of the stream at which a port has this many; more than LIMIT if there are none. */
static int64_t least_reaching(int port, int64_t frames) {
  int64_t low = 0, high = 1;
  while (high <= LIMIT && length(port, high) < frames) {
    low = high;
    high *= 2;
  }
  if (high > LIMIT) {
    if (length(port, LIMIT) < frames) return LIMIT + 1;
    high = LIMIT;
  }
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (length(port, middle) < frames)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static int64_t pulses_of(int64_t end) {
  int64_t pulses = floor_div(end + PULSE - 1, PULSE);
  int i;
  for (i = 0; i < OUTPUTS; ++i) {
    const struct place *place = &places[INPUTS + i];
    const int64_t frames = total(INPUTS + i, end);
    if (place->streams && frames)
      pulses = max_i64(pulses, floor_div(place->delay + frames + place->frames - 1, place->frames));
  }
  for (i = 0; i < WAITS; ++i)
    pulses =
        max_i64(pulses, floor_div(waits[i].offset + total(FIRST_WAIT + i, end) + waits[i].frames - 1, waits[i].frames));
  return pulses;
}

static void set_end(@NAME@_stream *stream, int64_t end) {
  int i;
  stream->end = end;
  stream->last = pulses_of(end) - 1;
  for (i = 0; i < ENDS; ++i) set_word(stream, ends[i], total(FIRST_END + i, end));
  if (LAST_AT >= 0) set_word(stream, LAST_AT, stream->last);
}

static int end_stream(@NAME@_stream *stream, const void *const rest[], const size_t frames[]) {
  int64_t first = 0, last = LIMIT;
  int i, whole = 1;
  for (i = 0; i < INPUTS; ++i) {
    const struct place *place = &places[i];
    int64_t count;
    if (!place->streams) continue;
    if (frames && frames[i] > (uint64_t)LIMIT) return @UPPER@_LENGTH;
    count = frames ? (int64_t)frames[i] : 0;
    if (count < place->frames) whole = 0;
    if (count && (!rest || !rest[i])) return @UPPER@_NULL;
    first = max_i64(first, least_reaching(i, stream->pulses * place->frames + count));
    last = min_i64(last, least_reaching(i, stream->pulses * place->frames + count + 1) - 1);
  }
  if (whole) return @UPPER@_REST;
  if (first > last) return @UPPER@_LENGTH;
  for (i = 0; i < ASSUMPTIONS; ++i)
    if (!length(FIRST_ASSUMPTION + i, first)) return @UPPER@_LENGTH;
  set_end(stream, first);
  return @UPPER@_OK;
}

EXPORTED int @NAME@_flush(@NAME@_stream *stream, const void *const rest[], const size_t frames[],
                          void *const outputs[]) {
  const int code = check(stream);
  int64_t before = INT64_MAX; /* pulses before the rest */
  int i;
  if (code) return code;
  if (!outputs) return @UPPER@_NULL;
  for (i = 0; i < INPUTS; ++i)
    if (!places[i].streams && (!rest || !rest[i])) return @UPPER@_NULL;
  if (!stream->bases[WEIGHTS]) return @UPPER@_WEIGHTS;
  if (stream->failed) return @UPPER@_FAULT;
  if (stream->end < 0) {
    const int ended = end_stream(stream, rest, frames);
    if (ended) return ended;
  }
  if (stream->pulses > stream->last) return @UPPER@_ENDED;
  for (i = 0; i < INPUTS; ++i)
    if (places[i].streams) before = min_i64(before, total(i, stream->end) / places[i].frames);
  for (i = 0; i < INPUTS; ++i)
    if (places[i].streams && frames && frames[i] && (!rest || !rest[i])) return @UPPER@_NULL;
  for (i = 0; i < INPUTS; ++i) {
    const struct place *place = &places[i];
    unsigned char *source = rest ? (unsigned char *)(uintptr_t)rest[i] : 0;
    const int64_t count = place->streams && frames ? min_i64((int64_t)frames[i], LIMIT) : 0;
    const int64_t from = (stream->pulses - before) * place->frames;
    const int64_t left = clamp_i64(count - from, 0, place->frames);
    if (!place->streams) {
      move(stream, place, 0, source, place->frames, 0, place->frames, 1);
      continue;
    }
    if (left) move(stream, place, 0, source, count, from, left, 1);
    move(stream, place, left, 0, place->frames, 0, place->frames - left, 1);
  }
  return advance(stream, outputs);
}

EXPORTED size_t @NAME@_valid(const @NAME@_stream *stream, int output, size_t *first) {
  const struct place *place;
  int64_t from, to;
  if (first) *first = 0;
  if (check(stream) || output < 0 || output >= OUTPUTS || stream->pulses == 0) return 0;
  place = &places[INPUTS + output];
  if (!place->streams) { /* known at the end: as a whole, or its last frames */
    if (stream->end < 0 || stream->pulses <= stream->last) return 0;
    from = place->axis < 0 ? 0 : place->frames - total(INPUTS + output, stream->end);
    to = place->axis < 0 ? 1 : place->frames;
  } else {
    const int64_t start = (stream->pulses - 1) * place->frames - place->delay;
    from = clamp_i64(-start, 0, place->frames);
    to = stream->end < 0 ? place->frames : clamp_i64(total(INPUTS + output, stream->end) - start, from, place->frames);
  }
  if (first) *first = (size_t)from;
  return (size_t)(to - from);
}

EXPORTED int @NAME@_snapshot(const @NAME@_stream *stream, void *buffer, size_t bytes) {
  const int code = check(stream);
  unsigned char *to = (unsigned char *)buffer;
  if (code) return code;
  if (!buffer) return @UPPER@_NULL;
  if (bytes < @NAME@_snapshot_size()) return @UPPER@_MEMORY;
  memcpy(to, identity, sizeof identity);
  memcpy(to + 24, &stream->pulses, 8);
  memcpy(to + 32, &stream->end, 8);
  memcpy(to + SNAPSHOT_BYTES, region(stream, STATE), STATE_BYTES);
  return @UPPER@_OK;
}

EXPORTED int @NAME@_restore(@NAME@_stream *stream, const void *buffer, size_t bytes) {
  const int code = check(stream);
  const unsigned char *from = (const unsigned char *)buffer;
  int64_t pulses, end;
  size_t i;
  if (code) return code;
  if (!buffer) return @UPPER@_NULL;
  if (bytes != @NAME@_snapshot_size()) return @UPPER@_SNAPSHOT;
  for (i = 0; i < sizeof identity; ++i)
    if (from[i] != identity[i]) return @UPPER@_SNAPSHOT;
  memcpy(&pulses, from + 24, 8);
  memcpy(&end, from + 32, 8);
  if (end < -1 || end > LIMIT || pulses < 0 || pulses > (end < 0 ? LIMIT / PULSE : pulses_of(end)))
    return @UPPER@_SNAPSHOT;
  memcpy(region(stream, STATE), from + SNAPSHOT_BYTES, STATE_BYTES);
  stream->pulses = pulses;
  stream->end = stream->last = -1;
  if (end >= 0) set_end(stream, end);
  stream->failed = faulted(stream);
  return @UPPER@_OK;
}
