/* A driver with one fault, for the step `negatives`: preloaded, it changes what dlsym gives for one function of libcuda.
 *
 * SHIM=flip      a copy to the host has one wrong byte
 * SHIM=nothing   a launch returns success and does nothing
 * SHIM=memory    cuMemAlloc_v2 returns 2, out of memory
 * SHIM=taken     cuDevicePrimaryCtxRetain returns 46, another process has the GPU
 * SHIM=fault     cuCtxSynchronize returns 700, an illegal address
 * SHIM=stray     a kernel's first buffer lies a terabyte further on: what compute-sanitizer must find in the kernel
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static int (*download)(void *, unsigned long long, size_t);

static int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

static int stray(void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream,
                 void **parameters, void **extra)
{
    unsigned long long *first = parameters[0];
    *first += 1ull << 40;
    const int status = launch(kernel, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
    *first -= 1ull << 40;
    return status;
}
static int flip(void *to, unsigned long long from, size_t bytes)
{
    const int status = download(to, from, bytes);
    ((unsigned char *)to)[bytes / 2] ^= 1;
    return status;
}
static int nothing(void) { return 0; }
static int memory(void) { return 2; }
static int taken(void) { return 46; }
static int fault(void) { return 700; }

void *dlsym(void *handle, const char *name)
{
    static void *(*own)(void *, const char *);
    const char *wanted = getenv("SHIM");
    if (!own)
        own = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!own)
        own = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    if (!own)
        abort();
    void *found = own(handle, name);
    if (!wanted || !found)
        return found;
    if (!strcmp(wanted, "flip") && !strcmp(name, "cuMemcpyDtoH_v2")) {
        download = (int (*)(void *, unsigned long long, size_t))found;
        return (void *)flip;
    }
    if (!strcmp(wanted, "nothing") && !strcmp(name, "cuLaunchKernel"))
        return (void *)nothing;
    if (!strcmp(wanted, "memory") && !strcmp(name, "cuMemAlloc_v2"))
        return (void *)memory;
    if (!strcmp(wanted, "stray") && !strcmp(name, "cuLaunchKernel")) {
        launch = (int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))found;
        return (void *)stray;
    }
    if (!strcmp(wanted, "taken") && !strcmp(name, "cuDevicePrimaryCtxRetain"))
        return (void *)taken;
    if (!strcmp(wanted, "fault") && !strcmp(name, "cuCtxSynchronize"))
        return (void *)fault;
    return found;
}
