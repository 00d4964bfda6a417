/* A libnvidia-ml.so.1 that knows the GPUs of the fake libcuda. FAKE_NVML_INIT: what nvmlInit_v2 returns. FAKE_NVML_NAME:
 * another name than the driver's. FAKE_THROTTLE: bits of the reasons that hold the clocks down while the fake libcuda
 * works; an idle GPU gives bit 0, idle. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int number(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

struct memory { unsigned long long total, available, used; };
struct pci { char legacy[16]; unsigned domain, bus, device, ids[2]; char text[32]; };

int nvmlInit_v2(void) { return number("FAKE_NVML_INIT", 0); }
int nvmlSystemGetDriverVersion(char *text, unsigned length) { snprintf(text, length, "570.86.15"); return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = number("FAKE_COUNT", 1); return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = (void *)(0x100ul + index); return 0; }
int nvmlDeviceGetName(void *device, char *name, unsigned length)
{
    const char *text = getenv("FAKE_NVML_NAME"), *mutation = getenv("FAKE_MUTATION");
    (void)device;
    if (mutation && !strcmp(mutation, "nvml-names-another-gpu"))
        text = "Tesla T4";
    text = text ? text : getenv("FAKE_NAME");
    snprintf(name, length, "%s", text ? text : "NVIDIA H200");
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory)
{
    (void)device;
    memset(memory, 0, sizeof *memory);
    memory->total = 141ull << 30;
    return 0;
}
int nvmlDeviceGetPciInfo_v3(void *device, struct pci *pci)
{
    memset(pci, 0, sizeof *pci);
    pci->bus = 0x3b + (unsigned)((unsigned long)device - 0x100ul);
    return 0;
}
int nvmlDeviceGetClockInfo(void *device, int kind, unsigned *megahertz)
{
    (void)device;
    *megahertz = kind == 2 ? 3201 : 1980;
    return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons)
{
    (void)device;
    *reasons = getenv("FAKE_BUSY") ? number("FAKE_THROTTLE", 0) : 1;
    return 0;
}
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
    (void)device, (void)sensor;
    *celsius = 41;
    return 0;
}

/* FAKE_PCIE: generation, lanes, and the most of both, "5 16 5 16". FAKE_ECC: uncorrected errors. FAKE_ROWS: replaced rows, "corrected
 * uncorrected pending failed". FAKE_NVLINKS: "up down"; without them there are none. The link goes to a lower generation only
 * after a while: it stays up once the fake libcuda has worked (FAKE_WORKED). */
static unsigned part(const char *name, int at, const char *otherwise)
{
    const char *text = getenv(name);
    char *end;
    unsigned long value = 0;
    text = text ? text : otherwise;
    for (int i = 0; i <= at; ++i, text = end)
        value = strtoul(text, &end, 10);
    return (unsigned)value;
}
#define PCIE "5 16 5 16"
int nvmlDeviceGetCurrPcieLinkGeneration(void *device, unsigned *value)
{
    (void)device;
    *value = getenv("FAKE_WORKED") ? part("FAKE_PCIE", 0, PCIE) : 1;
    return 0;
}
int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned *value) 
{
    const char *mutation = getenv("FAKE_MUTATION");
    (void)device;
    *value = part("FAKE_PCIE", 1, PCIE) / (mutation && !strcmp(mutation, "link-has-half-its-lanes") ? 2 : 1);
    return 0;
}
int nvmlDeviceGetMaxPcieLinkGeneration(void *device, unsigned *value) { (void)device; *value = part("FAKE_PCIE", 2, PCIE); return 0; }
int nvmlDeviceGetMaxPcieLinkWidth(void *device, unsigned *value) { (void)device; *value = part("FAKE_PCIE", 3, PCIE); return 0; }
int nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, unsigned long long *count)
{
    (void)device;
    *count = kind == 1 && counter == 0 ? (unsigned)number("FAKE_ECC", 0) : 7;
    return 0;
}
int nvmlDeviceGetRemappedRows(void *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed)
{
    (void)device;
    *corrected = part("FAKE_ROWS", 0, "0 0 0 0");
    *uncorrected = part("FAKE_ROWS", 1, "0 0 0 0");
    *pending = part("FAKE_ROWS", 2, "0 0 0 0");
    *failed = part("FAKE_ROWS", 3, "0 0 0 0");
    return 0;
}
int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *active)
{
    const unsigned up = part("FAKE_NVLINKS", 0, "0 0"), down = part("FAKE_NVLINKS", 1, "0 0");
    (void)device;
    *active = link < up;
    return link < up + down ? 0 : 3;
}
