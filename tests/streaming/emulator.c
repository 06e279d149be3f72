/* The machine in a process of another processor: runs tables with the kernels of a library; see emulator.py.
 *
 * Arguments: the library, then its symbols. Reads from stdin, for each call: how many words the table has, how many
 * segments, how many lanes; the bytes of weights, state and arena; the table, with the number of a symbol before
 * each row; the segments; the weights; state and arena of each lane. Writes state and arena of each lane to stdout.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { WEIGHTS, STATE, ARENA, COUNT, LANE_WORDS };
enum { TABLE = 3, SEGMENTS, LANES };
typedef void (*kernel)(const int64_t *row, const int64_t *bases);

static void fail(const char *reason) {
    fprintf(stderr, "%s\n", reason);
    exit(1);
}

static char *allocate(int64_t size) {
    char *memory = aligned_alloc(64, (size + 127) / 64 * 64);
    if (!memory) fail("no memory");
    return memory;
}

static char *read_memory(int64_t size) {
    char *memory = allocate(size);
    if (fread(memory, 1, size, stdin) != (size_t)size) fail("the call is cut off");
    return memory;
}

int main(int count, char **arguments) {
    void *library = dlopen(arguments[1], RTLD_NOW);
    if (!library) fail(dlerror());
    int64_t head[6];
    while (fread(head, sizeof head, 1, stdin)) {
        int64_t lanes = head[LANES], *bases = (int64_t *)allocate(8 * LANE_WORDS * lanes);
        int64_t *row = (int64_t *)read_memory(8 * head[TABLE]), *segment = (int64_t *)read_memory(16 * head[SEGMENTS]);
        char *weights = read_memory(head[WEIGHTS]);
        for (int64_t lane = 0; lane < lanes; lane++) {
            int64_t *regions = bases + LANE_WORDS * lane;
            regions[WEIGHTS] = (int64_t)weights;
            regions[STATE] = (int64_t)read_memory(head[STATE]);
            regions[ARENA] = (int64_t)read_memory(head[ARENA]);
            regions[COUNT] = lanes;
        }
        for (int64_t i = 0; i < head[SEGMENTS]; i++, segment += 2) {
            int64_t *first = row;
            for (int64_t lane = 0; lane < (segment[1] ? 1 : lanes); lane++) {
                row = first;
                for (int64_t n = 0; n < segment[0]; n++, row += row[1]) {
                    kernel run = row[0] + 2 < count ? (kernel)dlsym(library, arguments[row[0] + 2]) : 0;
                    if (!run) fail("no such kernel");
                    run(row, bases + LANE_WORDS * lane);
                }
            }
        }
        for (int64_t lane = 0; lane < lanes; lane++) {
            int64_t *regions = bases + LANE_WORDS * lane;
            fwrite((char *)regions[STATE], 1, head[STATE], stdout);
            fwrite((char *)regions[ARENA], 1, head[ARENA], stdout);
            free((char *)regions[STATE]);
            free((char *)regions[ARENA]);
        }
        fflush(stdout);
        free(weights);
        free(bases);
    }
    return 0;
}
