/* A libnvidia-ml.so.1 that plays a whole host. FAKE_GPUS: `[N*]name|capability|GiB|MIG|persistence|ECC|links`, joined by
 * `;`, where -1 means "not supported". FAKE_DRIVER and FAKE_CUDA (-1: not known) are what it says of itself, FAKE_NVML_INIT
 * what nvmlInit_v2 returns, FAKE_LINKED the GPU
 * (its index xor this) that a GPU's links lead to instead of a switch, FAKE_WAY NVML's number of what lies between two, FAKE_LOST the index of a GPU that is lost, FAKE_HANG the seconds nvmlInit_v2 takes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOT_SUPPORTED = 3, LOST = 15, MOST = 64 };

struct gpu { char name[96]; int major, minor, memory, mig, persistence, ecc, links; };
struct place { char old[16]; unsigned domain, bus, device, id, board; char text[32]; };
struct memory { unsigned version; unsigned long long total, reserved, free, used; };

static struct gpu gpus[MOST];
static unsigned count;

static int number(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static void read_gpus(void)
{
    const char *text = getenv("FAKE_GPUS");
    count = 0;
    while (text && *text) {
        struct gpu gpu;
        int times = 1, used = 0;
        if (sscanf(text, "%d*%n", &times, &used) < 1 || !used)
            times = 1, used = 0;
        text += used;
        memset(&gpu, 0, sizeof gpu);
        if (sscanf(text, "%95[^|]|%d.%d|%d|%d|%d|%d|%d", gpu.name, &gpu.major, &gpu.minor, &gpu.memory, &gpu.mig,
                   &gpu.persistence, &gpu.ecc, &gpu.links) != 8)
            abort();
        for (int at = 0; at < times; at++, count++)
            gpus[count % MOST] = gpu;
        text = strchr(text, ';');
        text = text ? text + 1 : "";
    }
}

static int told(int value, unsigned *out)
{
    if (value < 0)
        return NOT_SUPPORTED;
    *out = (unsigned)value;
    return 0;
}

int nvmlInit_v2(void)
{
    sleep((unsigned)number("FAKE_HANG", 0));
    read_gpus();
    return number("FAKE_NVML_INIT", 0);
}
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char *text, unsigned length)
{
    const char *version = getenv("FAKE_DRIVER");
    snprintf(text, length, "%s", version ? version : "570.86.15");
    return 0;
}
int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = number("FAKE_CUDA", 12080);
    return *version < 0 ? NOT_SUPPORTED : 0;
}
int nvmlDeviceGetCount_v2(unsigned *out) { *out = count; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = &gpus[index % MOST];
    return (int)index == number("FAKE_LOST", -1) ? LOST : 0;
}
int nvmlDeviceGetName(struct gpu *gpu, char *name, unsigned length) { snprintf(name, length, "%s", gpu->name); return 0; }
int nvmlDeviceGetCudaComputeCapability(struct gpu *gpu, int *major, int *minor)
{
    *major = gpu->major;
    *minor = gpu->minor;
    return 0;
}
int nvmlDeviceGetMemoryInfo_v2(struct gpu *gpu, struct memory *memory)
{
    memory->total = (unsigned long long)gpu->memory << 30;
    memory->reserved = memory->used = 0;
    memory->free = memory->total;
    return 0;
}
int nvmlDeviceGetMigMode(struct gpu *gpu, unsigned *current, unsigned *pending)
{
    *pending = 0;
    return told(gpu->mig, current);
}
int nvmlDeviceGetPersistenceMode(struct gpu *gpu, unsigned *mode) { return told(gpu->persistence, mode); }
int nvmlDeviceGetEccMode(struct gpu *gpu, unsigned *current, unsigned *pending)
{
    *pending = 0;
    return told(gpu->ecc, current);
}
int nvmlDeviceGetNvLinkState(struct gpu *gpu, unsigned link, unsigned *state)
{
    *state = link < (unsigned)gpu->links;
    return 0;
}
static int place(unsigned bus, struct place *out)
{
    memset(out, 0, sizeof *out);
    out->bus = bus;
    snprintf(out->text, sizeof out->text, "00000000:%02X:00.0", bus);
    return 0;
}
int nvmlDeviceGetPciInfo_v3(struct gpu *gpu, struct place *out) { return place((unsigned)(gpu - gpus) + 1, out); }
int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct gpu *gpu, unsigned link, struct place *out)
{
    int other = number("FAKE_LINKED", 0);
    (void)link;
    return place(other ? ((unsigned)(gpu - gpus) ^ (unsigned)other) + 1 : 0xff, out);
}
int nvmlDeviceGetTopologyCommonAncestor(struct gpu *gpu, struct gpu *other, int *level)
{
    *level = number("FAKE_WAY", -1);
    return gpu == other || *level < 0 ? NOT_SUPPORTED : 0;
}
