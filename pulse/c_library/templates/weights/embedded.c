extern HIDDEN const unsigned char @SYMBOL@[];

static int64_t first_weights(void) { return (int64_t)(uintptr_t)@SYMBOL@; }
