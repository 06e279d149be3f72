/* @TITLE@; pulse @VERSION@ wrote it. README.md tells more. */
#ifndef @UPPER@_H
#define @UPPER@_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct @NAME@_stream @NAME@_stream; /* lies in memory of the caller */

typedef struct @NAME@_port {
  const char *name, *dtype; /* "float32", "int64", "bool" ... */
  int is_output, axes;
  const size_t *dims; /* of one pulse; elements are C-contiguous */
  size_t bytes;       /* of one pulse */
  int axis;           /* of time; -1: the port does not stream */
  size_t frames;      /* in each pulse */
  size_t delay;       /* leading frames of an output, to be dropped */
  double rate;        /* frames per second; 0: not known */
} @NAME@_port;

enum @NAME@_code {
  @UPPER@_OK = 0,
  @UPPER@_ENDED = 1,      /* no pulse is left; reset begins a new stream */
  @UPPER@_NULL = -1,      /* a pointer is null */
  @UPPER@_MEMORY = -2,    /* too few bytes */
  @UPPER@_ALIGNMENT = -3, /* the memory is not aligned */
  @UPPER@_STREAM = -4,    /* no stream is there: call init */
  @UPPER@_SNAPSHOT = -5,  /* it is of another model, or damaged */
  @UPPER@_LENGTH = -6,    /* the model takes no stream of this length */
  @UPPER@_REST = -7,      /* a whole pulse is left: call step */
  @UPPER@_FAULT = -8,     /* no result for some value: reset or restore */
  @UPPER@_WEIGHTS = -9    /* the weights are not those of the model, or missing */
};

size_t @NAME@_size(void);                    /* bytes of memory of a stream */
size_t @NAME@_alignment(void);               /* of its address */
const @NAME@_port *@NAME@_ports(int *count); /* the inputs, then the outputs */
/* Begins a stream in memory of the caller, who may free it at any time. */
int @NAME@_init(void *memory, size_t bytes, @NAME@_stream **stream);
int @NAME@_reset(@NAME@_stream *stream);
@WEIGHTS@/* Runs one pulse. An output that is not wanted is null. */
int @NAME@_step(@NAME@_stream *stream, const void *const inputs[], void *const outputs[]);
/* Ends the stream with a rest of so many frames (null: none) and runs one pulse; call it with the same rest until
   it returns @UPPER@_ENDED. */
int @NAME@_flush(@NAME@_stream *stream, const void *const rest[], const size_t frames[], void *const outputs[]);
/* How many frames of an output of the last pulse are of the sound, and which is the first. */
size_t @NAME@_valid(const @NAME@_stream *stream, int output, size_t *first);
size_t @NAME@_snapshot_size(void);
int @NAME@_snapshot(const @NAME@_stream *stream, void *buffer, size_t bytes);
int @NAME@_restore(@NAME@_stream *stream, const void *buffer, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
