/* @TITLE@ for hosts that pass audio in blocks of any size and at any rate; pulse @VERSION@ wrote it. */
#ifndef @UPPER@_BLOCKS_H
#define @UPPER@_BLOCKS_H
#include "@NAME@.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct @NAME@_blocks @NAME@_blocks; /* lies in memory of the caller, whose address is a multiple of 64 */

enum { @UPPER@_CHUNK = 256 };     /* the most frames of one feed */
enum { @UPPER@_MAX_RATIO = 256 }; /* the largest ratio between the model's rate and the host's */
/* The channels of all audio inputs, input by input, and those of the audio output; each has an array of samples. */
enum { @UPPER@_INPUT_CHANNELS = @INPUT_CHANNELS@, @UPPER@_OUTPUT_CHANNELS = @OUTPUT_CHANNELS@ };

/* Bytes of memory for blocks of so many frames (1: their size is not known, or changes) at so many frames per second;
   0 if the ratio between the model's rate and that one is above @UPPER@_MAX_RATIO. */
size_t @NAME@_blocks_size(int rate_hz, int block_frames);
int @NAME@_blocks_init(void *memory, size_t bytes, int rate_hz, int block_frames, @NAME@_blocks **blocks);
void @NAME@_blocks_reset(@NAME@_blocks *blocks);
/* By how many frames the output is later than the input; constant. */
int @NAME@_blocks_delay(const @NAME@_blocks *blocks);
/* Not 0: let the first input through as it is, as late as the model's output; the two are cross-faded in 10 ms. Its
   last channel is repeated if the output has more channels. */
void @NAME@_blocks_bypass(@NAME@_blocks *blocks, int bypass);
/* One block, in place if wanted: any number of frames of each input channel (null: silence) and of each output channel
   (null: not needed). */
void @NAME@_blocks_process(@NAME@_blocks *blocks, const float *const inputs[], float *const outputs[], size_t frames);
/* The same in parts, for at most CHUNK frames: feed, run until it gives 0, take. */
void @NAME@_blocks_feed(@NAME@_blocks *blocks, const float *const inputs[], int frames);
int @NAME@_blocks_run(@NAME@_blocks *blocks);
void @NAME@_blocks_take(@NAME@_blocks *blocks, float *const outputs[], int frames);
/* Which output is the audio, counted from the first; -1: none. */
int @NAME@_blocks_sound_output(void);
/* What the last pulse gave at an output (counted from the first), all frames of it. */
const void *@NAME@_blocks_output(const @NAME@_blocks *blocks, int output);
const @NAME@_stream *@NAME@_blocks_stream(const @NAME@_blocks *blocks);
/* How many samples were not a number and counted as 0, and how many pulses had no result and were silent. */
void @NAME@_blocks_counters(const @NAME@_blocks *blocks, double *samples, double *pulses);

#ifdef __cplusplus
}
#endif
#endif
