#define WEIGHTS_BYTES @BYTES@u
#define WEIGHTS_CHECKSUM UINT32_C(@CHECKSUM@)

static int64_t first_weights(void) { return 0; }

static uint32_t checksum(const unsigned char *data, size_t bytes) { /* Adler-32 (RFC 1950) */
  uint32_t sum = 1, sums = 0;
  while (bytes) {
    size_t part = bytes < 5552 ? bytes : 5552; /* the most for which both stay below 2**32 */
    bytes -= part;
    for (; part; --part) {
      sum += *data++;
      sums += sum;
    }
    sum %= 65521;
    sums %= 65521;
  }
  return sums << 16 | sum;
}

EXPORTED int @NAME@_weights(@NAME@_stream *stream, const void *weights, size_t bytes) {
  const int code = check(stream);
  if (code) return code;
  if (!weights) return @UPPER@_NULL;
  if ((uintptr_t)weights % ALIGNMENT) return @UPPER@_ALIGNMENT;
  if (bytes != WEIGHTS_BYTES) return @UPPER@_WEIGHTS;
  if (checksum((const unsigned char *)weights, bytes) != WEIGHTS_CHECKSUM) return @UPPER@_WEIGHTS;
  stream->bases[WEIGHTS] = (int64_t)(uintptr_t)weights;
  return @UPPER@_OK;
}
