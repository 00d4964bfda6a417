/* What the parts of the fake driver share, and what it gives to the fake libraries. */
#ifndef FAKE_QUEUE_H
#define FAKE_QUEUE_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MOST_PARAMETERS 20

/* Whether that fault of tests/fixtures/gpu/mutations.txt is asked for. */
int is_mutation(const char *name);

/* Puts work on a stream of the current context; the arguments are copied. It is done when the program waits for it. */
int fake_enqueue(void *stream, void (*run)(void *), const void *arguments, size_t bytes);
/* The current context. */
void *fake_context(void);

/* A kernel's parameters: p pointer, i int, l 64 bits, f float; 0 if there is no such kernel. */
const char *fake_parameters(const char *name);
/* Its __launch_bounds__, else 1024. */
unsigned fake_most_threads(const char *name);
/* Runs a kernel as it was launched. */
void fake_kernel(const char *name, const unsigned *grid, const unsigned *block, void **parameters);

#ifdef __cplusplus
}
#endif
#endif
