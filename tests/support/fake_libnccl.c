/* A libnccl that adds on the processor, for tests with the fake libcuda: calls are gathered and carried out at the end of
 * the group, as a real one needs all ranks, each on its stream: a rank's target is written when its GPU is waited for. Without FAKE_COMPUTE it says success and does nothing. FAKE_WRONG: the last rank
 * gets one wrong element. FAKE_NCCL: its version (22703). FAKE_NCCL_RC: what ncclCommInitAll returns. */
#include "fake_client.h"

struct rank { int rank, size; };
struct call { int kind; const float *from; float *to; size_t count; int operation; struct rank rank; void *stream, *context; };
/* The calls of a group and, once one of them was carried out, the results of all. */
struct group { int count, done; struct call calls[64]; float *results[64]; };

static struct group *group;
static float factor = 1;

static int number(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

int ncclGetVersion(int *version) { *version = number("FAKE_NCCL", 22703); return 0; }
const char *ncclGetLastError(void *comm) { (void)comm; return "said by the fake"; }
int ncclCommInitAll(struct rank **comms, int count, const int *devices)
{
    for (int at = 0; at < count; ++at) {
        comms[at] = malloc(sizeof **comms);
        *comms[at] = (struct rank){at, count};
        if (devices[at] < 0)
            return 4;
    }
    return number("FAKE_NCCL_RC", 0);
}
int ncclCommDestroy(struct rank *comm) { free(comm); return 0; }
int ncclGroupStart(void) { group = calloc(1, sizeof *group); return 0; }

static void *stream_of_call;
static int gather(int kind, const void *from, void *to, size_t count, int type, int operation, struct rank *rank)
{
    if (!group || type != 7 || group->count == 64 || !context_now())
        return 5;
    group->calls[group->count++] =
        (struct call){kind, from, to, count, operation, *rank, stream_of_call, context_now()};
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
    return stream && peer == (comm->rank + 1) % comm->size ? gather(4, from, 0, count, type, 0, comm) : 4;
}
int ncclRecv(void *to, size_t count, int type, int peer, struct rank *comm, void *stream)
{
    stream_of_call = stream;
    return stream && peer == (comm->rank + comm->size - 1) % comm->size ? gather(5, 0, to, count, type, 0, comm) : 4;
}
int ncclRedOpCreatePreMulSum(int *operation, void *scalar, int type, int residence, void *comm)
{
    if (type != 7 || residence != 1 || !comm)
        return 4;
    factor = *(float *)scalar;
    *operation = 6;
    return 0;
}

/* The call of that kind by a rank. */
static struct call *of(struct group *own, int kind, int rank)
{
    for (int at = 0; at < own->count; ++at)
        if (own->calls[at].kind == kind && own->calls[at].rank.rank == rank)
            return &own->calls[at];
    abort();
}

/* What one rank receives. */
static void carry_out(struct group *all, struct call *own, float *to)
{
    const int size = own->rank.size, rank = own->rank.rank;
    const int ranks = size > 1 && own->kind == 0 && MUTATION("reduce-misses-a-rank") ? size - 1 : size;
    const int part = MUTATION("scatter-gives-first-part") ? 0 : rank;
    for (size_t i = 0; i < own->count; ++i) {
        float sum = 0;
        switch (own->kind) {
        case 0:
        case 2:
            for (int other = 0; other < ranks; ++other)
                sum += of(all, own->kind, other)->from[i + (own->kind == 2 ? part * own->count : 0)];
            to[i] = own->operation == 6 ? sum * factor : sum;
            break;
        case 1:
            for (int other = 0; other < size; ++other) {
                const int from = MUTATION("gather-swaps-ranks") ? size - 1 - other : other;
                to[other * own->count + i] = of(all, 1, from)->from[i];
            }
            break;
        case 3: to[i] = of(all, 3, MUTATION("broadcast-from-itself") ? rank : 0)->from[i]; break;
        default:
            to[i] = of(all, 4, (rank + size - 1) % size)->from[i];
            if (i == own->count - 1 && MUTATION("receive-is-late"))
                to[i] = own->to[i];
        }
    }
    if (getenv("FAKE_WRONG") && rank == size - 1)
        to[own->count / 2] += 1;
}
static size_t bytes_of(const struct call *own) { return own->count * (own->kind == 1 ? own->rank.size : 1) * sizeof(float); }

struct part { struct group *group; int at; };
/* Every rank waits for all others; then its own target is written. */
static void finish(void *arguments)
{
    const struct part *own = arguments;
    struct group *all = own->group;
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
