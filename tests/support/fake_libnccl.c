/* A libnccl that adds on the processor, for tests with the fake libcuda: calls are gathered and carried out at the end of
 * the group, as a real one needs all ranks. Without FAKE_COMPUTE it says success and does nothing. FAKE_WRONG: the last rank
 * gets one wrong element. FAKE_NCCL: its version (22703). FAKE_NCCL_RC: what ncclCommInitAll returns. */
#include <stdlib.h>
#include <string.h>

struct rank { int rank, size; };
struct call { int kind; const float *from; float *to; size_t count; int operation; struct rank *rank; };

static struct call calls[64];
static int gathered, open_group;
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
int ncclGroupStart(void) { open_group = 1; gathered = 0; return 0; }

static int gather(int kind, const void *from, void *to, size_t count, int type, int operation, struct rank *rank)
{
    if (!open_group || type != 7 || gathered == 64)
        return 5;
    calls[gathered++] = (struct call){kind, from, to, count, operation, rank};
    return 0;
}
int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation, struct rank *comm, void *stream)
{
    return stream ? gather(0, from, to, count, type, operation, comm) : 4;
}
int ncclAllGather(const void *from, void *to, size_t count, int type, struct rank *comm, void *stream)
{
    return stream ? gather(1, from, to, count, type, 0, comm) : 4;
}
int ncclReduceScatter(const void *from, void *to, size_t count, int type, int operation, struct rank *comm, void *stream)
{
    return stream ? gather(2, from, to, count, type, operation, comm) : 4;
}
int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, struct rank *comm, void *stream)
{
    return stream && root == 0 ? gather(3, from, to, count, type, 0, comm) : 4;
}
int ncclSend(const void *from, size_t count, int type, int peer, struct rank *comm, void *stream)
{
    return stream && peer == (comm->rank + 1) % comm->size ? gather(4, from, 0, count, type, 0, comm) : 4;
}
int ncclRecv(void *to, size_t count, int type, int peer, struct rank *comm, void *stream)
{
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
static struct call *of(int kind, int rank)
{
    for (int at = 0; at < gathered; ++at)
        if (calls[at].kind == kind && calls[at].rank->rank == rank)
            return &calls[at];
    return 0;
}

int ncclGroupEnd(void)
{
    open_group = 0;
    if (!getenv("FAKE_COMPUTE"))
        return 0;
    for (int at = 0; at < gathered; ++at) {
        struct call *own = &calls[at];
        const int size = own->rank->size;
        for (size_t i = 0; i < own->count && own->kind != 4; ++i) {
            float sum = 0;
            switch (own->kind) {
            case 0:
            case 2:
                for (int rank = 0; rank < size; ++rank)
                    sum += of(own->kind, rank)->from[i + (own->kind == 2 ? own->rank->rank * own->count : 0)];
                own->to[i] = own->operation == 6 ? sum * factor : sum;
                break;
            case 1:
                for (int rank = 0; rank < size; ++rank)
                    own->to[rank * own->count + i] = of(1, rank)->from[i];
                break;
            case 3: own->to[i] = of(3, 0)->from[i]; break;
            default: own->to[i] = of(4, (own->rank->rank + size - 1) % size)->from[i];
            }
        }
        if (getenv("FAKE_WRONG") && own->rank->rank == size - 1 && own->to)
            own->to[own->count / 2] += 1;
    }
    return 0;
}
