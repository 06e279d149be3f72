/* Runs the test vector of @TITLE@: run_@NAME@ @ARGUMENTS@. Exit code 0: every frame is as expected; 3: some
   differ, and the vector does not say how far they may. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "@NAME@.h"

#ifdef @UPPER@_WEIGHTS_FILE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *file;

static void read_bytes(void *to, size_t bytes) {
  if (bytes && fread(to, 1, bytes, file) != bytes) {
    fputs("the vector is cut short\n", stderr);
    exit(2);
  }
}

static int64_t read_number(void) {
  int64_t number;
  read_bytes(&number, sizeof number);
  return number;
}

static void *allocate(size_t bytes) {
  void *memory = malloc(bytes ? bytes : 1);
  if (!memory) {
    fputs("out of memory\n", stderr);
    exit(2);
  }
  return memory;
}

static void require(int code, int expected, const char *what) {
  if (code != expected) {
    fprintf(stderr, "%s gives %d, not %d\n", what, code, expected);
    exit(1);
  }
}

static double element(const @NAME@_port *port, const unsigned char *data, size_t i) {
  union {
    float f32;
    double f64;
    int64_t i64;
    int32_t i32;
    int16_t i16;
  } value;
  if (!strcmp(port->dtype, "float32")) {
    memcpy(&value.f32, data + 4 * i, 4);
    return value.f32;
  }
  if (!strcmp(port->dtype, "float64")) {
    memcpy(&value.f64, data + 8 * i, 8);
    return value.f64;
  }
  if (!strcmp(port->dtype, "int64")) {
    memcpy(&value.i64, data + 8 * i, 8);
    return (double)value.i64;
  }
  if (!strcmp(port->dtype, "int32")) {
    memcpy(&value.i32, data + 4 * i, 4);
    return value.i32;
  }
  if (!strcmp(port->dtype, "int16")) {
    memcpy(&value.i16, data + 2 * i, 2);
    return value.i16;
  }
  if (!strcmp(port->dtype, "int8")) return (signed char)data[i];
  return data[i];
}

#ifdef @UPPER@_WEIGHTS_FILE
static void give_weights(@NAME@_stream *stream, const char *path) { /* processes share the pages of the file */
  struct stat about;
  const int weights = open(path, O_RDONLY);
  void *content;
  if (weights < 0 || fstat(weights, &about) || about.st_size <= 0) {
    fprintf(stderr, "%s cannot be read\n", path);
    exit(2);
  }
  content = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, weights, 0);
  close(weights);
  if (content == MAP_FAILED) {
    fprintf(stderr, "%s cannot be mapped\n", path);
    exit(2);
  }
  require(@NAME@_weights(stream, content, (size_t)about.st_size), @UPPER@_OK, "weights");
}
#define ARGUMENTS 3
#else
#define ARGUMENTS 2
#endif

struct run { /* of the vector */
  @NAME@_stream *stream;
  const @NAME@_port *ports;
  int inputs, outputs;
  int judged;            /* whether the vector says how far numbers may be off */
  int64_t steps, pulses; /* calls of step; pulses in all */
  const void **in;       /* a pulse of each input, or its rest */
  void **out;
  size_t *frames; /* of the rest of each input */
  size_t *valid;  /* frames of each output so far */
  int64_t same, all;
  double largest; /* difference */
};

static void begin_run(struct run *run, void *memory) {
  int ports, i;
  run->ports = @NAME@_ports(&ports);
  run->inputs = 0;
  while (run->inputs < ports && !run->ports[run->inputs].is_output) ++run->inputs;
  run->outputs = ports - run->inputs;
  run->in = (const void **)allocate((size_t)run->inputs * sizeof *run->in);
  run->frames = (size_t *)allocate((size_t)run->inputs * sizeof *run->frames);
  run->out = (void **)allocate((size_t)run->outputs * sizeof *run->out);
  run->valid = (size_t *)allocate((size_t)run->outputs * sizeof *run->valid);
  for (i = 0; i < run->inputs; ++i) run->in[i] = allocate(run->ports[i].bytes);
  for (i = 0; i < run->outputs; ++i) {
    run->out[i] = allocate(run->ports[run->inputs + i].bytes);
    run->valid[i] = 0;
  }
  run->judged = (int)read_number();
  run->steps = read_number();
  run->pulses = read_number();
  run->same = run->all = 0;
  run->largest = 0;
  require(@NAME@_init(memory, @NAME@_size(), &run->stream), @UPPER@_OK, "init");
}

static void end_run(struct run *run) {
  int i;
  for (i = 0; i < run->outputs; ++i) free(run->out[i]);
  for (i = 0; i < run->inputs; ++i) free((void *)(uintptr_t)run->in[i]);
  free((void *)run->in);
  free(run->out);
  free(run->frames);
  free(run->valid);
}

static void read_rest(struct run *run) {
  int i;
  for (i = 0; i < run->inputs; ++i) {
    const size_t bytes = (size_t)read_number();
    void *rest = allocate(bytes);
    run->frames[i] = (size_t)read_number();
    free((void *)(uintptr_t)run->in[i]);
    read_bytes(rest, bytes);
    run->in[i] = rest;
  }
}

static void run_pulse(struct run *run, int64_t pulse) {
  int i;
  if (pulse < run->steps) {
    for (i = 0; i < run->inputs; ++i) read_bytes((void *)(uintptr_t)run->in[i], run->ports[i].bytes);
    require(@NAME@_step(run->stream, run->in, run->out), @UPPER@_OK, "step");
    return;
  }
  if (pulse == run->steps) read_rest(run);
  require(@NAME@_flush(run->stream, run->in, run->frames, run->out), @UPPER@_OK, "flush");
}

/* Counts an element and how far it is off; how far that is. */
static double compare(struct run *run, double value, double expected) {
  const int is_same = value == expected || (value != value && expected != expected);
  const double off = is_same ? 0 : fabs(value - expected);
  run->same += off == 0;
  ++run->all;
  if (!(off <= run->largest)) run->largest = off;
  return off;
}

static void compare_output(struct run *run, int64_t pulse, int output) {
  const @NAME@_port *port = &run->ports[run->inputs + output];
  size_t first, count = @NAME@_valid(run->stream, output, &first), inner = 1, elements = 1, i;
  unsigned char *expected;
  double *allowed;
  int axis;
  for (axis = 0; axis < port->axes; ++axis) {
    elements *= port->dims[axis];
    if (axis > port->axis) inner *= port->dims[axis];
  }
  expected = (unsigned char *)allocate(port->bytes);
  allowed = (double *)allocate(elements * sizeof *allowed);
  read_bytes(expected, port->bytes);
  read_bytes(allowed, elements * sizeof *allowed);
  run->valid[output] += count;
  for (i = 0; i < elements; ++i) {
    const size_t frame = port->axis < 0 ? 0 : i / inner % port->dims[port->axis];
    const double value = element(port, (unsigned char *)run->out[output], i), target = element(port, expected, i);
    double off;
    if (frame < first || frame >= first + count) continue;
    off = compare(run, value, target);
    if (run->judged && !(off <= allowed[i])) {
      fprintf(stderr, "%s, pulse %ld, element %lu: %.9g, not %.9g; %.3g is allowed\n", port->name, (long)pulse,
              (unsigned long)i, value, target, allowed[i]);
      exit(1);
    }
  }
  free(expected);
  free(allowed);
}

static void check_end(struct run *run) {
  int i;
  if (run->pulses == run->steps) read_rest(run);
  require(@NAME@_flush(run->stream, run->in, run->frames, run->out), @UPPER@_ENDED, "flush at the end");
  for (i = 0; i < run->outputs; ++i) require((int)run->valid[i], (int)read_number(), "the sum of valid");
}

int main(int argc, char **argv) {
  unsigned char *raw = (unsigned char *)allocate(@NAME@_size() + @NAME@_alignment());
  unsigned char *memory = raw + (@NAME@_alignment() - (uintptr_t)raw % @NAME@_alignment()) % @NAME@_alignment();
  struct run run;
  int64_t pulse;
  int i;
  if (argc != ARGUMENTS || !(file = fopen(argv[1], "rb"))) {
    fputs("run_@NAME@ @ARGUMENTS@\n", stderr);
    return 2;
  }
  begin_run(&run, memory);
#ifdef @UPPER@_WEIGHTS_FILE
  give_weights(run.stream, argv[2]);
#endif
  for (pulse = 0; pulse < run.pulses; ++pulse) {
    run_pulse(&run, pulse);
    for (i = 0; i < run.outputs; ++i) compare_output(&run, pulse, i);
  }
  check_end(&run);
  printf("%ld pulses, %ld of %ld numbers equal, largest difference %.3g%s\n", (long)run.pulses, (long)run.same,
         (long)run.all, run.largest, run.judged ? ", all within the tolerance" : "");
  end_run(&run);
  free(raw);
  fclose(file);
  return run.judged || run.same == run.all ? 0 : 3;
}
