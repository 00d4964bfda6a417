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
 * FAKE_FREE        MiB of memory that are free (40: as much as a workspace of cuBLASLt and a little)
 * FAKE_MAPS        whether physical memory can be mapped at reserved addresses (1)
 * FAKE_IPC_RC      what cuIpcGetMemHandle returns
 * FAKE_MUTATION    one fault of tests/fixtures/gpu/mutations.txt
 * FAKE_CLIENTS     a file: each process adds "+" and its ID when it starts the driver, and "-" and its ID when it ends
 *
 * It is strict. Work is queued and done when the program waits for it: the other streams' before the default stream's, since
 * nothing orders them. Memory begins as noise and ends at a page that nobody may touch. A call needs a current context,
 * and addresses, modules, streams and events of that context; a kernel that is given others faults when it is waited for.
 * Kernels are the sources of kernels/cuda, run block by block as they were launched (fake_kernels.cpp).
 *
 * "Device memory" is memory of this process, so that copies work.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_queue.h"

typedef unsigned long long address;

static int number(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

int is_mutation(const char *name)
{
    const char *text = getenv("FAKE_MUTATION");
    return text && !strcmp(text, name);
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

static void tell(char sign)
{
    char text[32];
    const int file = getenv("FAKE_CLIENTS") ? open(getenv("FAKE_CLIENTS"), O_WRONLY | O_APPEND) : -1;
    if (file < 0)
        return;
    const int length = snprintf(text, sizeof text, "%c%d\n", sign, getpid());
    if (write(file, text, (size_t)length) < 0)
        abort();
    close(file);
}
static int told;
__attribute__((destructor)) static void ended(void)
{
    if (told)
        tell('-');
}

#ifndef CUINIT
#define CUINIT 0 /* 34 makes it a toolkit's stub. */
#endif

int cuInit(unsigned flags)
{
    (void)flags;
    if (!told++)
        tell('+');
    if (is_mutation("init-fails"))
        return 999;
    if (getenv("FAKE_CRASH"))
        abort();
    while (getenv("FAKE_HANG"))
        pause();
    return number("FAKE_CUINIT", CUINIT);
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
    case 18: *value = number("FAKE_INTEGRATED", 0); return 0;
    case 20: *value = number("FAKE_COMPUTE_MODE", 0); return 0;
    case 32: *value = 1; return 0;
    case 33: *value = 0x3b + device; return 0;
    case 34: case 50: *value = 0; return 0;
    case 102: *value = number("FAKE_MAPS", 1); return 0;
    default: return 1;
    }
}

/* ---- contexts, streams, events and work that waits ---- */

struct context { int device; char reaches[16]; };
struct stream { struct context *context; };
struct event { struct context *context; int recorded; float at; };
struct work { struct context *context; struct stream *stream; void (*run)(void *); void *arguments; struct work *next; };

static struct context contexts[16];
static __thread struct context *current;
static struct work *pending;
/* The fault of a kernel: every later call that waits returns it. */
static int fault;

/* With FAKE_LOCK, a file: a second process that wants a context while another has one gets 46. */
int cuDevicePrimaryCtxRetain(struct context **context, int device)
{
    if (getenv("FAKE_LOCK") && flock(open(getenv("FAKE_LOCK"), O_RDWR | O_CREAT, 0600), LOCK_EX | LOCK_NB))
        return 46;
    contexts[device].device = device;
    *context = &contexts[device];
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
int cuCtxSetCurrent(struct context *context) { current = context; return context ? 0 : 201; }
void *fake_context(void) { return current; }

int fake_enqueue(void *stream, void (*run)(void *), const void *arguments, size_t bytes)
{
    struct stream *own = stream;
    struct work **end = &pending, *added = malloc(sizeof *added);
    if (!current)
        return 201;
    if (own && own->context != current)
        return 400;
    *added = (struct work){current, own, run, malloc(bytes), 0};
    memcpy(added->arguments, arguments, bytes);
    while (*end)
        end = &(*end)->next;
    *end = added;
    return 0;
}

/* Does the work of a context: that of the default stream, or of all others. */
static void finish(struct context *context, int is_default)
{
    for (struct work **at = &pending; *at;) {
        struct work *own = *at;
        if (own->context != context || (own->stream == 0) != is_default) {
            at = &own->next;
            continue;
        }
        *at = own->next;
        own->run(own->arguments);
        free(own->arguments);
        free(own);
    }
}
static int finish_all(struct context *context)
{
    finish(context, 0);
    finish(context, 1);
    idle();
    return fault ? fault : number("FAKE_SYNC_RC", 0);
}
int cuCtxSynchronize(void) { return current ? finish_all(current) : 201; }

/* ---- memory ---- */

#define PAGE ((size_t)4096)
/* cuMemAlloc gives addresses that are multiples of 256. */
#define ALIGNED ((size_t)256)
struct allocation { uintptr_t start; size_t bytes, mapped; struct context *context; };
static struct allocation allocations[4096];
static size_t allocated[16];

static struct allocation *of_address(address where)
{
    for (int at = 0; at < 4096; ++at)
        if (allocations[at].bytes && where >= allocations[at].start && where - allocations[at].start < allocations[at].bytes)
            return &allocations[at];
    return 0;
}
/* Whether the current context reaches that stretch. */
static int is_own(address where, size_t bytes)
{
    const struct allocation *found = of_address(where);
    if (!current || !found || where - found->start + bytes > found->bytes)
        return 0;
    return found->context == current || current->reaches[found->context->device];
}

int cuMemGetInfo_v2(size_t *available, size_t *total)
{
    if (!current)
        return 201;
    *available = ((size_t)number("FAKE_FREE", 40) << 20) - allocated[current->device];
    *total = (size_t)141 << 30;
    return 0;
}
int cuMemAlloc_v2(address *where, size_t bytes)
{
    size_t available, total;
    const size_t held = (bytes + ALIGNED - 1) / ALIGNED * ALIGNED, mapped = (held + PAGE - 1) / PAGE * PAGE + PAGE;
    static uint64_t noise = 42;
    if (!current || !bytes)
        return current ? 1 : 201;
    cuMemGetInfo_v2(&available, &total);
    if (held > available)
        return 2;
    char *start = mmap(0, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED || mprotect(start + mapped - PAGE, PAGE, PROT_NONE))
        return 2;
    for (size_t at = 0; at + 8 <= mapped - PAGE; at += 8) {
        noise = noise * 6364136223846793005ull + 1442695040888963407ull;
        memcpy(start + at, &noise, 8);
    }
    for (int at = 0; at < 4096; ++at)
        if (!allocations[at].bytes) {
            *where = (uintptr_t)start + mapped - PAGE - held;
            allocations[at] = (struct allocation){(uintptr_t)*where, bytes, mapped, current};
            allocated[current->device] += held;
            return 0;
        }
    return 2;
}
int cuMemFree_v2(address where)
{
    struct allocation *own = of_address(where);
    if (!own || own->start != where || !own->mapped)
        return 1;
    finish_all(own->context);
    const size_t held = (own->bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
    allocated[own->context->device] -= held;
    munmap((void *)(own->start + held + PAGE - own->mapped), own->mapped);
    own->bytes = 0;
    return 0;
}

/* ---- physical memory at reserved addresses: files that are mapped ---- */

struct location { int kind, device; };
struct properties { int kind, handle_kinds; struct location location; void *windows; unsigned char flags[8]; };
struct access { struct location location; int flags; };
#define GRANULARITY ((size_t)2 << 20)
static struct { int file; size_t bytes; } parts[64];
static struct { uintptr_t start; size_t bytes; } reserved[64];
static struct { uintptr_t start; size_t bytes; int part; } placed[64];

static int is_pinned(const struct properties *own)
{
    return own->kind == 1 && !own->handle_kinds && own->location.kind == 1 && !own->windows;
}
int cuMemGetAllocationGranularity(size_t *bytes, const struct properties *own, int option)
{
    *bytes = GRANULARITY;
    return is_pinned(own) && !option ? 0 : 1;
}
int cuMemAddressReserve(address *where, size_t bytes, size_t alignment, address wanted, unsigned long long flags)
{
    int at = 0;
    while (reserved[at].bytes)
        ++at;
    if (!bytes || bytes % GRANULARITY || alignment || wanted || flags)
        return 1;
    char *start = mmap(0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    reserved[at].start = *where = (uintptr_t)start;
    reserved[at].bytes = bytes;
    return start == MAP_FAILED ? 2 : 0;
}
int cuMemAddressFree(address where, size_t bytes)
{
    for (int at = 0; at < 64; ++at)
        if (placed[at].bytes && placed[at].start >= where && placed[at].start < where + bytes)
            return 1;
    for (int at = 0; at < 64; ++at)
        if (reserved[at].bytes == bytes && reserved[at].start == where) {
            reserved[at].bytes = 0;
            return munmap((void *)(uintptr_t)where, bytes) ? 1 : 0;
        }
    return 1;
}
int cuMemCreate(unsigned long long *part, size_t bytes, const struct properties *own, unsigned long long flags)
{
    size_t available, total;
    int at = 1;
    while (parts[at].bytes)
        ++at;
    if (!bytes || bytes % GRANULARITY || !is_pinned(own) || flags)
        return 1;
    cuMemGetInfo_v2(&available, &total);
    if (bytes > available)
        return 2;
    parts[at].file = memfd_create("part", 0);
    parts[at].bytes = bytes;
    allocated[current->device] += bytes;
    *part = (unsigned long long)at;
    return parts[at].file < 0 || ftruncate(parts[at].file, (off_t)bytes) ? 2 : 0;
}
int cuMemRelease(unsigned long long part)
{
    if (part >= 64 || !parts[part].bytes)
        return 1;
    close(parts[part].file);
    allocated[current->device] -= parts[part].bytes;
    parts[part].bytes = 0;
    return 0;
}
int cuMemMap(address where, size_t bytes, size_t offset, unsigned long long part, unsigned long long flags)
{
    int at = 0, is_reserved = 0;
    static int first_at[2];
    for (int other = 0; other < 64; ++other)
        is_reserved |= reserved[other].bytes && where >= reserved[other].start && where + bytes <= reserved[other].start + reserved[other].bytes;
    if (!is_reserved || offset || flags || part >= 64 || parts[part].bytes != bytes)
        return 1;
    for (; placed[at].bytes; ++at)
        if (placed[at].start < where + bytes && where < placed[at].start + placed[at].bytes)
            return 1;
    /* A translation of before is kept: the same place shows the same part. */
    if (is_mutation("old-translation-is-kept")) {
        int *kept = &first_at[where != reserved[0].start];
        part = *kept && parts[*kept].bytes ? (unsigned long long)*kept : part;
        *kept = (int)part;
    }
    if (mmap((void *)(uintptr_t)where, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, parts[part].file, 0) == MAP_FAILED)
        return 2;
    placed[at].start = (uintptr_t)where;
    placed[at].bytes = bytes;
    placed[at].part = (int)part;
    return 0;
}
/* Until then nobody may touch it. */
int cuMemSetAccess(address where, size_t bytes, const struct access *own, size_t count)
{
    int at = 0;
    size_t covered = 0;
    for (int other = 0; other < 64; ++other)
        if (placed[other].bytes && placed[other].start >= where && placed[other].start < where + bytes)
            covered += placed[other].bytes;
    if (covered != bytes || count != 1 || own->location.kind != 1 || own->location.device != current->device || own->flags != 3)
        return 1;
    while (allocations[at].bytes)
        ++at;
    allocations[at] = (struct allocation){(uintptr_t)where, bytes, 0, current};
    return mprotect((void *)(uintptr_t)where, bytes, PROT_READ | PROT_WRITE) ? 1 : 0;
}
int cuMemUnmap(address where, size_t bytes)
{
    struct allocation *own = of_address(where);
    for (int at = 0; at < 64; ++at)
        if (placed[at].bytes == bytes && placed[at].start == where) {
            if (own && !own->mapped)
                own->bytes = 0;
            placed[at].bytes = 0;
            return mmap((void *)(uintptr_t)where, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED;
        }
    return 1;
}

/* ---- memory of another process: a file that both map ---- */

struct ipc { char text[64]; };
int cuIpcGetMemHandle(struct ipc *handle, address where)
{
    const struct allocation *own = of_address(where);
    const int file = memfd_create("shared", 0);
    if (getenv("FAKE_IPC_RC"))
        return number("FAKE_IPC_RC", 0);
    if (!own || own->start != where || !own->mapped || file < 0)
        return 1;
    const size_t bytes = own->mapped - PAGE;
    char *start = (char *)(own->start + (own->bytes + ALIGNED - 1) / ALIGNED * ALIGNED - bytes);
    if (ftruncate(file, (off_t)bytes) || pwrite(file, start, bytes, 0) != (ssize_t)bytes)
        return 2;
    if (mmap(start, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
        return 2;
    snprintf(handle->text, sizeof handle->text, "%d %d %zu %zu %zu", getpid(), file, (size_t)((char *)own->start - start), own->bytes, bytes);
    return 0;
}
int cuIpcOpenMemHandle_v2(address *where, struct ipc handle, unsigned flags)
{
    int process, at = 0, file;
    char path[64];
    size_t offset, bytes, mapped;
    if (sscanf(handle.text, "%d %d %zu %zu %zu", &process, &file, &offset, &bytes, &mapped) != 5 || flags != 1)
        return 1;
    /* Not by the process whose memory it is. */
    if (!current || process == getpid())
        return 201;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", process, file);
    const int own = open(path, O_RDWR);
    /* What is written there stays here. */
    const int kind = is_mutation("opened-memory-is-a-copy") ? MAP_PRIVATE : MAP_SHARED;
    char *start = mmap(0, mapped, PROT_READ | PROT_WRITE, kind, own, 0);
    close(own);
    if (own < 0 || start == MAP_FAILED)
        return 1;
    while (allocations[at].bytes)
        ++at;
    allocations[at] = (struct allocation){(uintptr_t)start + offset, bytes, 0, current};
    *where = (uintptr_t)start + offset;
    return 0;
}
int cuIpcCloseMemHandle(address where)
{
    struct allocation *own = of_address(where);
    if (!own || own->start != where || own->mapped)
        return 1;
    finish_all(own->context);
    munmap((void *)(own->start & ~(PAGE - 1)), own->bytes);
    own->bytes = 0;
    return 0;
}

struct copy { address to, from; size_t bytes; const void *held; int byte; };
static void do_copy(void *arguments)
{
    const struct copy *own = arguments;
    memmove((void *)(uintptr_t)own->to, (void *)(uintptr_t)own->from, own->bytes);
}
static void do_upload(void *arguments)
{
    const struct copy *own = arguments;
    memcpy((void *)(uintptr_t)own->to, own->held, own->bytes);
    free((void *)own->held);
}
static void do_fill(void *arguments)
{
    const struct copy *own = arguments;
    memset((void *)(uintptr_t)own->to, own->byte, own->bytes);
}
/* Returns when the bytes are on their way: they arrive in the order of the default stream. */
int cuMemcpyHtoD_v2(address to, const void *from, size_t bytes)
{
    void *held = malloc(bytes);
    worked();
    if (!is_own(to, bytes))
        return current ? 1 : 201;
    memcpy(held, from, bytes);
    const struct copy own = {to, 0, bytes, held, 0};
    return fake_enqueue(0, do_upload, &own, sizeof own);
}
/* Waits for the default stream only. */
int cuMemcpyDtoH_v2(void *to, address from, size_t bytes)
{
    if (!is_own(from, bytes))
        return current ? 1 : 201;
    finish(current, 1);
    idle();
    memcpy(to, (void *)(uintptr_t)from, bytes);
    if (getenv("FAKE_CORRUPT"))
        ((unsigned char *)to)[bytes / 2] ^= 4;
    return fault;
}
int cuMemcpyDtoD_v2(address to, address from, size_t bytes)
{
    const struct copy own = {to, from, bytes - is_mutation("copy-within-drops-last"), 0, 0};
    busy();
    if (!is_own(to, bytes) || !is_own(from, bytes))
        return current ? 1 : 201;
    return fake_enqueue(0, do_copy, &own, sizeof own);
}
int cuMemsetD8_v2(address where, unsigned char byte, size_t bytes)
{
    const struct copy own = {where, 0, bytes, 0, byte};
    worked();
    if (!is_own(where, bytes))
        return current ? 1 : 201;
    return fake_enqueue(0, do_fill, &own, sizeof own);
}
/* As in CUDA: a copy goes through the host until the source's context may reach the target's memory. */
int cuCtxEnablePeerAccess(struct context *peer, unsigned flags)
{
    if (!current || !peer || flags || current == peer)
        return 1;
    if (current->reaches[peer->device])
        return 704;
    current->reaches[peer->device] = 1;
    return 0;
}
struct peers { address to, from; size_t bytes; int wrong; };
static void do_peer_copy(void *arguments)
{
    const struct peers *own = arguments;
    memcpy((void *)(uintptr_t)own->to, (void *)(uintptr_t)own->from, own->bytes);
    if (own->wrong)
        ((unsigned char *)(uintptr_t)own->to)[own->bytes / 3] ^= 4;
}
int cuMemcpyPeer(address to, struct context *to_context, address from, struct context *from_context, size_t bytes)
{
    const struct allocation *target = of_address(to), *source = of_address(from);
    if (!to_context || !from_context)
        return 201;
    if (!target || !source || target->context != to_context || source->context != from_context)
        return 1;
    const int direct = from_context->reaches[to_context->device];
    const char *way = is_mutation("direct-copy-is-wrong") ? "directly" : word("FAKE_BAD_PEERS", "");
    const struct peers own = {to, from, bytes, !strcmp(way, direct ? "directly" : "through the host")};
    busy();
    /* Serialized with all work of both. */
    finish_all(from_context);
    finish_all(to_context);
    do_peer_copy((void *)&own);
    return 0;
}
static void do_queued_peer_copy(void *arguments) { do_peer_copy(arguments); }
int cuMemcpyPeerAsync(address to, struct context *to_context, address from, struct context *from_context, size_t bytes, void *stream)
{
    const struct allocation *target = of_address(to), *source = of_address(from);
    if (!to_context || !from_context)
        return 201;
    if (!target || !source || target->context != to_context || source->context != from_context)
        return 1;
    const struct peers own = {to, from, bytes, 0};
    busy();
    return getenv("FAKE_COMPUTE") ? fake_enqueue(stream, do_queued_peer_copy, &own, sizeof own) : 0;
}
int cuDeviceCanAccessPeer(int *can, int device, int peer) { *can = device != peer; return 0; }
int cuMemAllocHost_v2(void **start, size_t bytes) { *start = malloc(bytes); return !current ? 201 : *start ? 0 : 2; }
int cuMemFreeHost(void *start) { free(start); return 0; }
int cuStreamCreate(struct stream **stream, unsigned flags)
{
    *stream = malloc(sizeof **stream);
    **stream = (struct stream){current};
    return current && flags == 1 ? 0 : 201;
}

/* Time passes a millisecond for each event. */
static float now;
static void do_record(void *arguments)
{
    struct event *own = *(struct event **)arguments;
    own->at = ++now;
    own->recorded = 1;
}
int cuEventCreate(struct event **event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, sizeof **event);
    (*event)->context = current;
    return current ? 0 : 201;
}
int cuEventRecord(struct event *event, void *stream)
{
    return event->context == current ? fake_enqueue(stream, do_record, &event, sizeof event) : 400;
}
int cuEventSynchronize(struct event *event)
{
    finish(event->context, 1);
    idle();
    return fault;
}
int cuEventElapsedTime(float *milliseconds, struct event *start, struct event *end)
{
    *milliseconds = end->at - start->at;
    return start->recorded && end->recorded ? 0 : 600;
}

/* ---- kernels ---- */

struct module { struct context *context; };
struct function { struct context *context; char name[32]; };

int cuModuleLoadData(struct module **module, const void *image)
{
    *module = malloc(sizeof **module);
    **module = (struct module){current};
    return !current ? 201 : image ? 0 : 200;
}
int cuModuleGetFunction(struct function **function, struct module *module, const char *name)
{
    *function = malloc(sizeof **function);
    (*function)->context = module->context;
    snprintf((*function)->name, sizeof (*function)->name, "%s", name);
    return fake_parameters(name) ? 0 : 500;
}

struct launch { char name[32]; unsigned grid[3], block[3]; unsigned long long values[MOST_PARAMETERS]; };
static void do_launch(void *arguments)
{
    struct launch *own = arguments;
    void *parameters[MOST_PARAMETERS];
    for (int at = 0; at < MOST_PARAMETERS; ++at)
        parameters[at] = &own->values[at];
    fake_kernel(own->name, own->grid, own->block, parameters);
    /* A word that keeps its value: what the kernel wrote there is lost. */
    const struct allocation *words = of_address(own->values[0]);
    const size_t stuck = ((size_t)5 << 20) & ~(size_t)7;
    int large = 0;
    for (int at = 0; at < 4096; ++at)
        large += allocations[at].bytes >= (size_t)4 << 20;
    if (large < 3 && is_mutation("cell-is-stuck") && words && words->bytes > stuck + 8)
        memset((void *)(words->start + stuck), 0x5a, 8);
    /* The same in memory that is used only when most is taken. */
    if (large >= 3 && words && is_mutation("far-cell-is-stuck"))
        memset((void *)(words->start + words->bytes / 2 / 8 * 8), 0x5a, 8);
}
static void do_fault(void *arguments) { (void)arguments; fault = 700; }

int cuLaunchKernel(struct function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra)
{
    struct launch own = {"", {gx, gy, gz}, {bx, by, bz}, {0}};
    int reached = 1;
    if (getenv("FAKE_LAUNCH_RC"))
        return number("FAKE_LAUNCH_RC", 0);
    busy();
    if (!gx || !gy || !gz || gx > 2147483647 || gy > 65535 || gz > 65535)
        return 1;
    if (!bx || !by || !bz || bx > 1024 || by > 1024 || bz > 64 || bx * by * bz > 1024 || shared || extra)
        return 1;
    if (!current || function->context != current)
        return current ? 400 : 201;
    snprintf(own.name, sizeof own.name, "%s", function->name);
    const char *kinds = fake_parameters(function->name);
    if (fake_most_threads(function->name) < bx * by * bz)
        return 701;
    for (int at = 0; kinds[at]; ++at) {
        memcpy(&own.values[at], parameters[at], kinds[at] == 'p' || kinds[at] == 'l' ? 8 : 4);
        reached &= kinds[at] != 'p' || is_own(own.values[at], 1);
    }
    if (!reached)
        return fake_enqueue(stream, do_fault, &own, sizeof own);
    return getenv("FAKE_COMPUTE") ? fake_enqueue(stream, do_launch, &own, sizeof own) : 0;
}
