/* Steps of any library in a loop of C, and how long a start takes: for bench.library.times. */
#define _POSIX_C_SOURCE 199309L
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef int (*step_function)(void *stream, const void *const inputs[], void *const outputs[]);

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

double timed_steps(step_function step, void *stream, const void *const inputs[], void *const outputs[], int count) {
  const double before = now();
  for (int i = 0; i < count; ++i)
    if (step(stream, inputs, outputs)) return -1;
  return (now() - before) / count;
}

int main(int argc, char **argv) { /* the library, its name: seconds until the first stream is ready */
  char symbol[256];
  void *library, *memory, *stream;
  const double before = now();
  if (argc != 3 || !(library = dlopen(argv[1], RTLD_NOW))) return 1;
  snprintf(symbol, sizeof symbol, "%s_size", argv[2]);
  size_t (*size)(void);
  *(void **)&size = dlsym(library, symbol);
  snprintf(symbol, sizeof symbol, "%s_init", argv[2]);
  int (*init)(void *, size_t, void **);
  *(void **)&init = dlsym(library, symbol);
  memory = aligned_alloc(64, (size() + 63) / 64 * 64);
  if (!memory || init(memory, size(), &stream)) return 1;
  printf("%.9f\n", now() - before);
  free(memory);
  return 0;
}
