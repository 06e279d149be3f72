#define @UPPER@_WEIGHTS_FILE "@NAME@.weights"
/* Gives a stream the content of that file, once, before the first pulse; it stays where it is, for all streams. */
int @NAME@_weights(@NAME@_stream *stream, const void *weights, size_t bytes);
