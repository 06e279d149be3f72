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
  void *made = malloc(bytes ? bytes : 1);
  if (!made) {
    fputs("out of memory\n", stderr);
    exit(2);
  }
  return made;
}

static void require(int code, int expected, const char *what) {
  if (code != expected) {
    fprintf(stderr, "%s gives %d, not %d\n", what, code, expected);
    exit(1);
  }
}

static double element(const @NAME@_port *port, const unsigned char *data, size_t i) {
  if (!strcmp(port->dtype, "float32")) { float v; memcpy(&v, data + 4 * i, 4); return v; }
  if (!strcmp(port->dtype, "float64")) { double v; memcpy(&v, data + 8 * i, 8); return v; }
  if (!strcmp(port->dtype, "int64")) { int64_t v; memcpy(&v, data + 8 * i, 8); return (double)v; }
  if (!strcmp(port->dtype, "int32")) { int32_t v; memcpy(&v, data + 4 * i, 4); return v; }
  if (!strcmp(port->dtype, "int16")) { int16_t v; memcpy(&v, data + 2 * i, 2); return v; }
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

static void read_rest(int inputs, const void **in, size_t *frames) {
  int i;
  for (i = 0; i < inputs; ++i) {
    const size_t bytes = (size_t)read_number();
    void *rest = allocate(bytes);
    frames[i] = (size_t)read_number();
    free((void *)(uintptr_t)in[i]);
    read_bytes(rest, bytes);
    in[i] = rest;
  }
}

int main(int argc, char **argv) {
  int ports, inputs = 0, outputs, i, judged;
  const @NAME@_port *port = @NAME@_ports(&ports);
  unsigned char *raw = (unsigned char *)allocate(@NAME@_size() + @NAME@_alignment());
  unsigned char *memory = raw + (@NAME@_alignment() - (uintptr_t)raw % @NAME@_alignment()) % @NAME@_alignment();
  @NAME@_stream *stream;
  int64_t steps, pulses, pulse, same = 0, all = 0;
  double largest = 0;
  const void **in;
  void **out;
  size_t *frames, *valid;
  if (argc != ARGUMENTS || !(file = fopen(argv[1], "rb"))) {
    fputs("run_@NAME@ @ARGUMENTS@\n", stderr);
    return 2;
  }
  while (inputs < ports && !port[inputs].is_output) ++inputs;
  outputs = ports - inputs;
  in = (const void **)allocate((size_t)inputs * sizeof *in);
  frames = (size_t *)allocate((size_t)inputs * sizeof *frames);
  out = (void **)allocate((size_t)outputs * sizeof *out);
  valid = (size_t *)allocate((size_t)outputs * sizeof *valid);
  for (i = 0; i < outputs; ++i) out[i] = allocate(port[inputs + i].bytes), valid[i] = 0;
  for (i = 0; i < inputs; ++i) in[i] = allocate(port[i].bytes);
  judged = (int)read_number(); /* whether the vector says how far numbers may be off */
  steps = read_number();       /* calls of step; then: pulses in all */
  pulses = read_number();
  require(@NAME@_init(memory, @NAME@_size(), &stream), @UPPER@_OK, "init");
#ifdef @UPPER@_WEIGHTS_FILE
  give_weights(stream, argv[2]);
#endif
  for (pulse = 0; pulse < pulses; ++pulse) {
    if (pulse < steps)
      for (i = 0; i < inputs; ++i) read_bytes((void *)(uintptr_t)in[i], port[i].bytes);
    if (pulse == steps) read_rest(inputs, in, frames);
    if (pulse < steps)
      require(@NAME@_step(stream, in, out), @UPPER@_OK, "step");
    else
      require(@NAME@_flush(stream, in, frames, out), @UPPER@_OK, "flush");
    for (i = 0; i < outputs; ++i) {
      const @NAME@_port *one = &port[inputs + i];
      size_t first, count = @NAME@_valid(stream, i, &first), inner = 1, elements = 1, j;
      unsigned char *expected;
      double *allowed;
      int axis;
      for (axis = 0; axis < one->axes; ++axis) {
        elements *= one->dims[axis];
        if (axis > one->axis) inner *= one->dims[axis];
      }
      expected = (unsigned char *)allocate(one->bytes);
      allowed = (double *)allocate(elements * sizeof *allowed);
      read_bytes(expected, one->bytes);
      read_bytes(allowed, elements * sizeof *allowed);
      valid[i] += count;
      for (j = 0; j < elements; ++j) {
        const size_t frame = one->axis < 0 ? 0 : j / inner % one->dims[one->axis];
        const double got = element(one, (unsigned char *)out[i], j), wanted = element(one, expected, j);
        const double off = got == wanted || (got != got && wanted != wanted) ? 0 : fabs(got - wanted);
        if (frame < first || frame >= first + count) continue;
        same += off == 0;
        ++all;
        if (!(off <= largest)) largest = off;
        if (judged && !(off <= allowed[j])) {
          fprintf(stderr, "%s, pulse %ld, element %lu: %.9g, not %.9g; %.3g is allowed\n", one->name, (long)pulse,
                  (unsigned long)j, got, wanted, allowed[j]);
          return 1;
        }
      }
      free(expected);
      free(allowed);
    }
  }
  if (pulses == steps) read_rest(inputs, in, frames);
  require(@NAME@_flush(stream, in, frames, out), @UPPER@_ENDED, "flush at the end");
  for (i = 0; i < outputs; ++i) require((int)valid[i], (int)read_number(), "the sum of valid");
  printf("%ld pulses, %ld of %ld numbers equal, largest difference %.3g%s\n", (long)pulses, (long)same, (long)all,
         largest, judged ? ", all within the tolerance" : "");
  for (i = 0; i < outputs; ++i) free(out[i]);
  for (i = 0; i < inputs; ++i) free((void *)(uintptr_t)in[i]);
  free((void *)in);
  free(out);
  free(frames);
  free(valid);
  free(raw);
  fclose(file);
  return judged || same == all ? 0 : 3;
}
