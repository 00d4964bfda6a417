/* A libnccl that adds on the processor, for tests with the fake libcuda: calls are gathered and carried out at the end of
 * the group, as a real one needs all ranks, each on its stream: a rank's target is written when its GPU is waited for. Without FAKE_COMPUTE it says success and does nothing. FAKE_WRONG: the last rank
 * gets one wrong element. FAKE_NCCL: its version (22703). FAKE_NCCL_RC: what ncclCommInitAll returns.
 * NCCL_DEBUG_FILE gets a log of the channels, as NCCL writes it. */
#include "fake_client.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

/* A rank of this process, or one of several processes, which meet in a folder. */
struct rank { int rank, size; char folder[64]; };
struct call { int kind; const void *from; void *to; size_t count; int type, operation, peer; struct rank rank; void *stream, *context; };
/* The calls of a group and, once one of them was carried out, the results of all. */
struct group { int count, done; struct call calls[256]; void *results[256]; };

static struct group *group;
static float factor = 1;

static int number(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

int ncclGetVersion(int *version) { *version = number("FAKE_NCCL", 22703); return 0; }
const char *ncclGetLastError(void *comm) { (void)comm; return "said by the fake"; }
/* As NCCL_DEBUG=INFO writes it: who sends to whom, and by what. */
static void log_channels(int count)
{
    const char *path = getenv("NCCL_DEBUG_FILE"), *level = getenv("NCCL_DEBUG");
    FILE *file = count > 1 && path && level && !strcmp(level, "INFO") ? fopen(path, "a") : 0;
    for (int at = 0; file && at < count; ++at)
        fprintf(file, "host:1:%d [%d] NCCL INFO Channel 00/0 : %d[%d] -> %d[%d]%s\n", at, at, at, at, (at + 1) % count,
                (at + 1) % count, is_mutation("log-names-no-transport") ? "" : " via P2P/CUMEM/read");
    if (file)
        fclose(file);
}
int ncclCommInitAll(struct rank **comms, int count, const int *devices)
{
    for (int at = 0; at < count; ++at) {
        comms[at] = malloc(sizeof **comms);
        *comms[at] = (struct rank){at, count, ""};
        if (devices[at] < 0)
            return 4;
    }
    log_channels(count);
    return number("FAKE_NCCL_RC", 0);
}
struct unique { char text[128]; };
/* The folder that this process made. */
static struct unique made;
__attribute__((destructor)) static void remove_folder(void)
{
    char path[160];
    for (int rank = 0; rank < 64 && *made.text; ++rank) {
        snprintf(path, sizeof path, "%s/%d", made.text, rank);
        unlink(path);
    }
    if (*made.text)
        rmdir(made.text);
}
int ncclGetUniqueId(struct unique *id)
{
    memset(id, 0, sizeof *id);
    strcpy(id->text, "/tmp/fake-nccl-XXXXXX");
    if (!mkdtemp(id->text))
        return 2;
    made = *id;
    return 0;
}
int ncclCommInitRank(struct rank **comm, int size, struct unique id, int rank)
{
    *comm = malloc(sizeof **comm);
    **comm = (struct rank){rank, size, ""};
    snprintf((*comm)->folder, sizeof (*comm)->folder, "%.63s", id.text);
    return rank >= 0 && rank < size && context_now() && !strncmp(id.text, "/tmp/fake-nccl-", 15) ? 0 : 4;
}
int ncclCommDestroy(struct rank *comm) { free(comm); return 0; }
int ncclGroupStart(void) { group = calloc(1, sizeof *group); return 0; }

static void *stream_of_call;
static int peer_of_call;
static size_t size_of(int type) { return type == 7 ? 4 : 2; }
static int gather(int kind, const void *from, void *to, size_t count, int type, int operation, struct rank *rank)
{
    if (!group || (type != 7 && type != 6 && type != 9) || group->count == 256 || !context_now())
        return 5;
    group->calls[group->count++] =
        (struct call){kind, from, to, count, type, operation, peer_of_call, *rank, stream_of_call, context_now()};
    return 0;
}
int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation, struct rank *comm, void *stream)
{
    stream_of_call = stream;
    return stream ? gather(0, from, to, count, type, operation, comm) : 4;
}
int ncclAllGather(const void *from, void *to, size_t count, int type, struct rank *comm, void *stream)
{
    stream_of_call = stream;
    return stream ? gather(1, from, to, count, type, 0, comm) : 4;
}
int ncclReduceScatter(const void *from, void *to, size_t count, int type, int operation, struct rank *comm, void *stream)
{
    stream_of_call = stream;
    return stream ? gather(2, from, to, count, type, operation, comm) : 4;
}
int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, struct rank *comm, void *stream)
{
    stream_of_call = stream;
    return stream && root == 0 ? gather(3, from, to, count, type, 0, comm) : 4;
}
int ncclSend(const void *from, size_t count, int type, int peer, struct rank *comm, void *stream)
{
    stream_of_call = stream;
    peer_of_call = peer;
    return stream && peer >= 0 && peer < comm->size ? gather(4, from, 0, count, type, 0, comm) : 4;
}
int ncclRecv(void *to, size_t count, int type, int peer, struct rank *comm, void *stream)
{
    stream_of_call = stream;
    peer_of_call = peer;
    return stream && peer >= 0 && peer < comm->size ? gather(5, 0, to, count, type, 0, comm) : 4;
}
int ncclRedOpCreatePreMulSum(int *operation, void *scalar, int type, int residence, void *comm)
{
    if (type != 7 || residence != 1 || !comm)
        return 4;
    factor = *(float *)scalar;
    *operation = 6;
    return 0;
}

/* The call of that kind by a rank; of a send, that to this peer. */
static struct call *of(struct group *own, int kind, int rank, int peer)
{
    for (int at = 0; at < own->count; ++at)
        if (own->calls[at].kind == kind && own->calls[at].rank.rank == rank && (kind != 4 || own->calls[at].peer == peer))
            return &own->calls[at];
    abort();
}

/* An element as a number. */
static float number_at(int type, const void *data, size_t at)
{
    if (type == 7)
        return ((const float *)data)[at];
    const uint16_t bits = ((const uint16_t *)data)[at];
    if (type == 9) {
        const uint32_t wide = (uint32_t)bits << 16;
        float value;
        memcpy(&value, &wide, 4);
        return value;
    }
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float value = exponent ? ldexpf(1024 + fraction, exponent - 25) : ldexpf(fraction, -24);
    return bits >> 15 ? -value : value;
}
/* And back; in half precision whole numbers below 2048 only. */
static void put(int type, void *data, size_t at, float value)
{
    if (type == 7) {
        ((float *)data)[at] = value;
        return;
    }
    uint32_t wide;
    memcpy(&wide, &value, 4);
    int exponent;
    const float fraction = frexpf(fabsf(value), &exponent);
    const uint16_t sign = value < 0 ? 0x8000 : 0;
    const uint16_t half = value == 0 ? 0 : sign | (uint16_t)((exponent + 14) << 10) | (uint16_t)(ldexpf(fraction, 11) - 1024);
    ((uint16_t *)data)[at] = type == 9 ? (uint16_t)(wide >> 16) : half;
}

/* What one rank receives. */
static void carry_out(struct group *all, struct call *own, void *to)
{
    const int size = own->rank.size, rank = own->rank.rank, type = own->type, several = all->count > 2 * size;
    const int ranks = type == 7 && size > 1 && own->kind == 0 && MUTATION("reduce-misses-a-rank") ? size - 1 : size;
    const int part = MUTATION("scatter-gives-first-part") ? 0 : rank;
    for (size_t i = 0; i < own->count; ++i) {
        float sum = 0;
        switch (own->kind) {
        case 0:
        case 2:
            for (int other = 0; other < ranks; ++other)
                sum += number_at(type, of(all, own->kind, other, 0)->from, i + (own->kind == 2 ? part * own->count : 0));
            put(type, to, i, own->operation == 6 ? sum * factor : sum);
            break;
        case 1:
            for (int other = 0; other < size; ++other) {
                const int from = MUTATION("gather-swaps-ranks") ? size - 1 - other : other;
                put(type, to, other * own->count + i, number_at(type, of(all, 1, from, 0)->from, i));
            }
            break;
        case 3: put(type, to, i, number_at(type, of(all, 3, MUTATION("broadcast-from-itself") ? rank : 0, 0)->from, i)); break;
        default: {
            const int peer = several && MUTATION("parts-come-from-oneself") ? rank : own->peer;
            put(type, to, i, number_at(type, of(all, 4, peer, rank)->from, i));
            if (!several && i == own->count - 1 && MUTATION("receive-is-late"))
                put(type, to, i, number_at(type, own->to, i));
        }
        }
    }
    if ((getenv("FAKE_WRONG") && rank == size - 1) || (type == 6 && MUTATION("fp16-sum-is-off")) ||
        (type == 9 && MUTATION("bf16-sum-is-off")))
        put(type, to, own->count / 2, number_at(type, to, own->count / 2) + 1);
}
static size_t bytes_of(const struct call *own) { return own->count * (own->kind == 1 ? own->rank.size : 1) * size_of(own->type); }

/* An all-reduce of processes: each writes its numbers to the folder and waits for the others'. */
static void meet(const struct call *own)
{
    char path[128], begun[160];
    float *part = malloc(own->count * sizeof *part), *sum = calloc(own->count, sizeof *sum);
    snprintf(path, sizeof path, "%s/%d", own->rank.folder, own->rank.rank);
    snprintf(begun, sizeof begun, "%s.part", path);
    FILE *file = fopen(begun, "w");
    if (!file || fwrite(own->from, sizeof *part, own->count, file) != own->count || fclose(file) || rename(begun, path))
        abort();
    for (int other = 0; other < own->rank.size - MUTATION("last-process-is-not-added"); ++other) {
        snprintf(path, sizeof path, "%s/%d", own->rank.folder, other);
        while (!(file = fopen(path, "r")))
            usleep(1000);
        if (fread(part, sizeof *part, own->count, file) != own->count)
            abort();
        fclose(file);
        for (size_t i = 0; i < own->count; ++i)
            sum[i] += part[i];
    }
    memcpy(own->to, sum, own->count * sizeof *sum);
    free(part);
    free(sum);
}

struct part { struct group *group; int at; };
/* Every rank waits for all others; then its own target is written. */
static void finish(void *arguments)
{
    const struct part *own = arguments;
    struct group *all = own->group;
    if (*all->calls[own->at].rank.folder) {
        meet(&all->calls[own->at]);
        return;
    }
    for (int at = 0; at < all->count && !all->done; ++at)
        if (all->calls[at].kind != 4) {
            all->results[at] = malloc(bytes_of(&all->calls[at]));
            carry_out(all, &all->calls[at], all->results[at]);
        }
    all->done = 1;
    memcpy(all->calls[own->at].to, all->results[own->at], bytes_of(&all->calls[own->at]));
}

int ncclGroupEnd(void)
{
    int (*set)(void *) = (int (*)(void *))of_driver("cuCtxSetCurrent");
    void *before = context_now();
    struct group *own = group;
    group = 0;
    for (int at = 0; at < own->count; ++at) {
        const struct part part = {own, at};
        if (own->calls[at].kind == 4)
            continue;
        set(own->calls[at].context);
        if (enqueue(own->calls[at].stream, finish, &part, sizeof part))
            return 4;
    }
    set(before);
    return 0;
}
