/* A libcuda.so.1 without a GPU, for tests: it answers with chosen codes, crashes, hangs, or claims a GPU.
 *
 * FAKE_CUINIT      what cuInit returns              FAKE_COUNT     how many GPUs there are (1)
 * FAKE_COUNT_RC    what cuDeviceGetCount returns    FAKE_NAME      what they are called (NVIDIA H200)
 * FAKE_CRASH       cuInit aborts                    FAKE_CC        their compute capability, 90 for 9.0
 * FAKE_HANG        cuInit never returns             FAKE_VERSION   what cuDriverGetVersion says (12080)
 * FAKE_LAUNCH_RC   what cuLaunchKernel returns      FAKE_SYNC_RC   what cuCtxSynchronize returns
 * FAKE_COMPUTE_MODE  what the GPU's compute mode is (0; 3: one process at a time, enforced with FAKE_LOCK)
 * FAKE_COMPUTE     kernels are computed by the processor; without it a launch returns success and does nothing
 * FAKE_WRONG       what is computed has one wrong element
 * FAKE_CORRUPT     a copy to the host has one wrong byte
 * FAKE_RETAIN_RC   what cuDevicePrimaryCtxRetain returns
 * FAKE_CC_OTHERS   the compute capability of all GPUs but the first
 * FAKE_BAD_PEERS   a copy to another GPU has one wrong byte if it goes "directly", or "through the host"
 *
 * "Device memory" is memory of this process, so that copies work.
 */
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

typedef unsigned long long address;

static int number(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static const char *word(const char *name, const char *otherwise)
{
    const char *text = getenv(name);
    return text ? text : otherwise;
}

int cuDriverGetVersion(int *version)
{
    *version = number("FAKE_VERSION", 12080);
    return 0;
}

int cuInit(unsigned flags)
{
    (void)flags;
    if (getenv("FAKE_CRASH"))
        abort();
    while (getenv("FAKE_HANG"))
        pause();
    return number("FAKE_CUINIT", 0);
}

int cuDeviceGetCount(int *count)
{
    *count = number("FAKE_COUNT", 1);
    return number("FAKE_COUNT_RC", 0);
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return 0;
}

int cuDeviceGetName(char *name, int length, int device)
{
    (void)device;
    snprintf(name, length, "%s", word("FAKE_NAME", "NVIDIA H200"));
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    *bytes = (size_t)141 << 30;
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    const int first = number("FAKE_CC", 90), capability = device ? number("FAKE_CC_OTHERS", first) : first;
    switch (attribute) {
    case 75: *value = capability / 10; return 0;
    case 76: *value = capability % 10; return 0;
    case 16: *value = 132; return 0;
    case 20: *value = number("FAKE_COMPUTE_MODE", 0); return 0;
    case 32: *value = 1; return 0;
    case 33: *value = 0x3b + device; return 0;
    case 34: case 50: *value = 0; return 0;
    default: return 1;
    }
}

/* ---- a context, and memory that is this process's own ---- */

/* With FAKE_LOCK, a file: a second process that wants a context while another has one gets 46. */
int cuDevicePrimaryCtxRetain(void **context, int device)
{
    if (getenv("FAKE_LOCK") && flock(open(getenv("FAKE_LOCK"), O_RDWR | O_CREAT, 0600), LOCK_EX | LOCK_NB))
        return 46;
    *context = (void *)(uintptr_t)(0x1000 + device);
    return number("FAKE_RETAIN_RC", 0);
}
/* The fake NVML sees by FAKE_BUSY whether a GPU works: from a copy or launch until the program waits for it. */
static void worked(void) { setenv("FAKE_WORKED", "1", 1); }
static void busy(void)
{
    worked();
    setenv("FAKE_BUSY", "1", 1);
}
static void idle(void) { unsetenv("FAKE_BUSY"); }
static void *current;
int cuCtxSetCurrent(void *context) { current = context; return context ? 0 : 201; }
int cuCtxSynchronize(void) { idle(); return number("FAKE_SYNC_RC", 0); }

int cuMemAlloc_v2(address *where, size_t bytes)
{
    *where = (address)(uintptr_t)malloc(bytes);
    return bytes && *where ? 0 : 2;
}
int cuMemFree_v2(address where) { free((void *)(uintptr_t)where); return 0; }
int cuMemGetInfo_v2(size_t *available, size_t *total)
{
    *available = (size_t)32 << 20;
    *total = (size_t)141 << 30;
    return 0;
}
int cuMemcpyHtoD_v2(address to, const void *from, size_t bytes) { worked(); memcpy((void *)(uintptr_t)to, from, bytes); return 0; }
int cuMemcpyDtoH_v2(void *to, address from, size_t bytes)
{
    memcpy(to, (void *)(uintptr_t)from, bytes);
    if (getenv("FAKE_CORRUPT"))
        ((unsigned char *)to)[bytes / 2] ^= 4;
    return 0;
}
int cuMemcpyDtoD_v2(address to, address from, size_t bytes)
{
    busy();
    memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
    return 0;
}
/* As in CUDA: a copy goes through the host until the source's context may reach the target's memory. */
static char reaches[16][16];
int cuCtxEnablePeerAccess(void *peer, unsigned flags)
{
    char *access = &reaches[(uintptr_t)current & 15][(uintptr_t)peer & 15];
    if (!current || !peer || flags || current == peer)
        return 1;
    if (*access)
        return 704;
    *access = 1;
    return 0;
}
int cuMemcpyPeer(address to, void *to_context, address from, void *from_context, size_t bytes)
{
    if (!to_context || !from_context)
        return 201;
    cuMemcpyDtoD_v2(to, from, bytes);
    const int direct = reaches[(uintptr_t)from_context & 15][(uintptr_t)to_context & 15];
    if (!strcmp(word("FAKE_BAD_PEERS", ""), direct ? "directly" : "through the host"))
        ((unsigned char *)(uintptr_t)to)[bytes / 3] ^= 4;
    return 0;
}
int cuDeviceCanAccessPeer(int *can, int device, int peer) { *can = device != peer; return 0; }
int cuMemsetD8_v2(address where, unsigned char byte, size_t bytes) { worked(); memset((void *)(uintptr_t)where, byte, bytes); return 0; }
int cuMemAllocHost_v2(void **start, size_t bytes) { *start = malloc(bytes); return *start ? 0 : 2; }
int cuMemFreeHost(void *start) { free(start); return 0; }
int cuStreamCreate(void **stream, unsigned flags) { (void)flags; *stream = (void *)0x2000; return 0; }

/* Time passes a millisecond for each event. */
static float now;
int cuEventCreate(void **event, unsigned flags) { (void)flags; *event = calloc(1, sizeof(float)); return 0; }
int cuEventRecord(void *event, void *stream) { (void)stream; *(float *)event = ++now; return 0; }
int cuEventSynchronize(void *event) { (void)event; idle(); return 0; }
int cuEventElapsedTime(float *milliseconds, void *start, void *end)
{
    *milliseconds = *(float *)end - *(float *)start;
    return 0;
}

/* ---- kernels: any image is a module, a function is its name ---- */

int cuModuleLoadData(void **module, const void *image) { *module = (void *)(uintptr_t)image; return image ? 0 : 200; }
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    (void)module;
    *function = strdup(name);
    return 0;
}

#define POINTER(type, at) ((type *)(uintptr_t) * (address *)parameters[at])
#define INT(at) (*(int *)parameters[at])
#define LONG(at) (*(unsigned long long *)parameters[at])

static float half(unsigned short bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float value = exponent ? ldexpf(1024 + fraction, exponent - 25) : ldexpf(fraction, -24);
    return bits & 0x8000 ? -value : value;
}
static float brain(unsigned short bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, 4);
    return value;
}
static float element(const char *kind, const void *matrix, size_t at)
{
    if (!strcmp(kind, "f16"))
        return half(((const unsigned short *)matrix)[at]);
    if (!strcmp(kind, "bf16"))
        return brain(((const unsigned short *)matrix)[at]);
    return ((const float *)matrix)[at];
}

static void gemm(const char *kind, void **parameters)
{
    const void *a = POINTER(void, 0), *b = POINTER(void, 1);
    float *c = POINTER(float, 2);
    const int m = INT(3), n = INT(4), k = INT(5);
    float *row = malloc(k * sizeof(float)), *right = malloc((size_t)k * n * sizeof(float));
    for (size_t at = 0; at < (size_t)k * n; ++at)
        right[at] = element(kind, b, at);
    for (int i = 0; i < m; ++i) {
        for (int l = 0; l < k; ++l)
            row[l] = element(kind, a, (size_t)i * k + l);
        for (int j = 0; j < n; ++j)
            c[(size_t)i * n + j] = 0;
        for (int l = 0; l < k; ++l)
            for (int j = 0; j < n; ++j)
                c[(size_t)i * n + j] += row[l] * right[(size_t)l * n + j];
    }
    if (getenv("FAKE_WRONG"))
        c[(size_t)m * n - 2] += 1;
    free(row);
    free(right);
}

static unsigned long long splitmix64(unsigned long long value)
{
    value += 0x9e3779b97f4a7c15ull;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
    return value ^ (value >> 31);
}

static void convolve(void **parameters)
{
    const float *x = POINTER(float, 0), *w = POINTER(float, 1);
    float *y = POINTER(float, 2);
    const int n = INT(3), c = INT(4), h = INT(5), width = INT(6), k = INT(7), r = INT(8), s = INT(9), groups = INT(10);
    const int sh = INT(11), sw = INT(12), ph = INT(13), pw = INT(14), dh = INT(15), dw = INT(16);
    const int p = (h + 2 * ph - dh * (r - 1) - 1) / sh + 1, q = (width + 2 * pw - dw * (s - 1) - 1) / sw + 1;
    const int channels = c / groups;
    for (int at = 0; at < n * k * p * q; ++at) {
        const int column = at % q, row = at / q % p, filter = at / q / p % k, image = at / q / p / k;
        float sum = 0;
        for (int channel = 0; channel < channels; ++channel)
            for (int i = 0; i < r; ++i)
                for (int j = 0; j < s; ++j) {
                    const int fr = row * sh - ph + i * dh, fc = column * sw - pw + j * dw;
                    const int from = filter / (k / groups) * channels + channel;
                    if (fr >= 0 && fr < h && fc >= 0 && fc < width)
                        sum += x[((image * c + from) * h + fr) * width + fc] *
                               w[((filter * channels + channel) * r + i) * s + j];
                }
        y[at] = sum;
    }
    if (getenv("FAKE_WRONG"))
        y[n * k * p * q / 2] += 1;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra)
{
    const char *name = function;
    (void)shared, (void)stream, (void)extra;
    if (getenv("FAKE_LAUNCH_RC"))
        return number("FAKE_LAUNCH_RC", 0);
    busy();
    if (!gx || !gy || !gz || bx * by * bz == 0 || bx * by * bz > 1024)
        return 1;
    if (!getenv("FAKE_COMPUTE"))
        return 0;
    if (!strcmp(name, "gemm_f32"))
        gemm("f32", parameters);
    else if (!strncmp(name, "gemm_wmma_", 10))
        gemm(name + 10, parameters);
    else if (!strncmp(name, "conv_", 5))
        convolve(parameters);
    else if (!strcmp(name, "axpy_f32")) {
        const float a = *(float *)parameters[0];
        for (unsigned long long at = 0; at < LONG(3); ++at)
            POINTER(float, 2)[at] = fmaf(a, POINTER(float, 1)[at], POINTER(float, 2)[at]);
    } else if (!strcmp(name, "divide_sqrt_f32"))
        for (unsigned long long at = 0; at < LONG(2); ++at) {
            const float x = POINTER(float, 0)[at];
            POINTER(float, 1)[at] = sqrtf(x) / (1 + x);
        }
    else if (!strcmp(name, "sum_u32"))
        for (unsigned long long at = 0; at < LONG(2); ++at)
            *POINTER(unsigned long long, 1) += POINTER(uint32_t, 0)[at];
    else if (!strcmp(name, "sum_f32"))
        for (unsigned long long at = 0; at < LONG(2); ++at)
            *POINTER(float, 1) += POINTER(float, 0)[at];
    else if (!strcmp(name, "pattern_write")) {
        for (unsigned long long at = 0; at < LONG(1); ++at)
            POINTER(unsigned long long, 0)[at] = splitmix64(LONG(2) + at);
        if (getenv("FAKE_WRONG"))
            POINTER(unsigned long long, 0)[LONG(1) / 2] ^= 64;
    } else if (!strcmp(name, "pattern_invert"))
        for (unsigned long long at = 0; at < LONG(1); ++at)
            POINTER(unsigned long long, 0)[at] = ~POINTER(unsigned long long, 0)[at];
    else if (!strcmp(name, "pattern_verify"))
        for (unsigned long long at = 0; at < LONG(1); ++at) {
            const unsigned long long wrong = POINTER(unsigned long long, 0)[at] ^ splitmix64(LONG(2) + at) ^ LONG(3);
            unsigned long long *found = POINTER(unsigned long long, 4);
            if (!wrong)
                continue;
            ++found[0];
            found[1] = at < found[1] ? at : found[1];
            found[2] |= wrong;
        }
    else
        return 500;
    return 0;
}
