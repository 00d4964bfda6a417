/* What a fake library takes from the fake driver, which the agent has loaded before. */
#ifndef FAKE_CLIENT_H
#define FAKE_CLIENT_H
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static void *of_driver(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return driver ? dlsym(driver, name) : 0;
}
/* The current context; 0 without a driver. */
__attribute__((unused)) static void *context_now(void)
{
    void *(*context)(void) = (void *(*)(void))of_driver("fake_context");
    return context ? context() : 0;
}
/* Puts work on a stream: it is done when the program waits for it. Without FAKE_COMPUTE it never is. */
__attribute__((unused)) static int enqueue(void *stream, void (*run)(void *), const void *arguments, size_t bytes)
{
    int (*queue)(void *, void (*)(void *), const void *, size_t) =
        (int (*)(void *, void (*)(void *), const void *, size_t))of_driver("fake_enqueue");
    if (!queue)
        return 1;
    return getenv("FAKE_COMPUTE") ? queue(stream, run, arguments, bytes) : 0;
}
/* Whether that fault of tests/fixtures/gpu/mutations.txt is asked for. */
__attribute__((unused)) static int is_mutation(const char *name)
{
    const char *text = getenv("FAKE_MUTATION");
    return text && !strcmp(text, name);
}
/* The same, asked once: for inner loops. */
#define MUTATION(name) \
    (__extension__({ \
        static int on = -1; \
        if (on < 0) \
            on = is_mutation(name); \
        on; \
    }))
#endif
