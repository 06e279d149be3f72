/* Every caller error gives a code; 0 if all do. */
#include "small.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define REQUIRE(code, expected) require((code), (expected), __LINE__)

static void require(int code, int expected, int line) {
  if (code == expected) return;
  fprintf(stderr, "line %d: %d, not %d\n", line, code, expected);
  exit(2);
}

int main(void) {
  const size_t size = small_size(), kept = small_snapshot_size();
  unsigned char *raw = malloc(size + 64), *memory = raw + (64 - (uintptr_t)raw % 64) % 64;
  unsigned char *snapshot = malloc(kept);
  float in[16] = {0}, y[16], loud[16];
  const void *inputs[] = {in}, *none[] = {NULL};
  void *outputs[] = {y, loud}, *unwanted[] = {NULL, NULL};
  size_t whole[] = {16}, part[] = {15}, far[] = {(size_t)-1}, first;
  small_stream *stream = NULL;
  int count;
  REQUIRE(small_init(NULL, size, &stream), SMALL_NULL);
  REQUIRE(small_init(memory, size, NULL), SMALL_NULL);
  REQUIRE(small_init(memory, size - 1, &stream), SMALL_MEMORY);
  REQUIRE(small_init(memory + 4, size, &stream), SMALL_ALIGNMENT);
  REQUIRE(small_init(memory, size, &stream), SMALL_OK);
  REQUIRE(small_ports(NULL) == NULL, 0);
  REQUIRE(small_ports(&count)->axis, 1);
  REQUIRE(count, 3);
  REQUIRE(small_step(NULL, inputs, outputs), SMALL_NULL);
  REQUIRE(small_step((small_stream *)(void *)(memory + 4), inputs, outputs), SMALL_ALIGNMENT);
  REQUIRE(small_step((small_stream *)(void *)(memory + 64), inputs, outputs), SMALL_STREAM);
  REQUIRE(small_step(stream, NULL, outputs), SMALL_NULL);
  REQUIRE(small_step(stream, none, outputs), SMALL_NULL);
  REQUIRE(small_step(stream, inputs, NULL), SMALL_NULL);
  REQUIRE((int)small_valid(stream, 0, &first), 0);
  REQUIRE((int)small_valid(stream, -1, &first), 0);
  REQUIRE((int)small_valid(stream, 2, NULL), 0);
  REQUIRE((int)small_valid(NULL, 0, &first), 0);
  REQUIRE(small_step(stream, inputs, unwanted), SMALL_OK);
  REQUIRE(small_flush(stream, inputs, whole, outputs), SMALL_REST);
  REQUIRE(small_flush(stream, NULL, part, outputs), SMALL_NULL);
  REQUIRE(small_flush(stream, inputs, far, outputs), SMALL_LENGTH);
  REQUIRE(small_flush(stream, inputs, part, NULL), SMALL_NULL);
  REQUIRE(small_snapshot(stream, snapshot, kept - 1), SMALL_MEMORY);
  REQUIRE(small_snapshot(stream, NULL, kept), SMALL_NULL);
  REQUIRE(small_snapshot(stream, snapshot, kept), SMALL_OK);
  REQUIRE(small_flush(stream, inputs, part, outputs), SMALL_OK);
  REQUIRE(small_flush(stream, NULL, part, outputs), SMALL_NULL); /* the delay is left */
  REQUIRE(small_flush(stream, inputs, part, outputs), SMALL_OK);
  REQUIRE(small_flush(stream, inputs, part, outputs), SMALL_ENDED);
  REQUIRE(small_step(stream, inputs, outputs), SMALL_ENDED);
  REQUIRE(small_restore(stream, snapshot, kept - 1), SMALL_SNAPSHOT);
  REQUIRE(small_restore(stream, NULL, kept), SMALL_NULL);
  REQUIRE(small_restore(stream, snapshot, kept), SMALL_OK);
  REQUIRE(small_step(stream, inputs, outputs), SMALL_OK);
  snapshot[9] ^= 1; /* of another model */
  REQUIRE(small_restore(stream, snapshot, kept), SMALL_SNAPSHOT);
  snapshot[9] ^= 1;
  snapshot[31] = 0x7f; /* more pulses than there can be */
  REQUIRE(small_restore(stream, snapshot, kept), SMALL_SNAPSHOT);
  REQUIRE(small_reset(stream), SMALL_OK);
  REQUIRE(small_flush(stream, NULL, NULL, outputs), SMALL_ENDED);
  REQUIRE(small_reset(NULL), SMALL_NULL);
  free(raw);
  free(snapshot);
  return 0;
}
