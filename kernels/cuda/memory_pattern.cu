// memory_pattern: fills device memory with a pattern that differs in every word, and counts what came back wrong.
//
// Proves: that a stretch of device memory keeps what is written to it, and that addresses do not alias.
// Entry:  pattern_write (unsigned long long *words, unsigned long long n, unsigned long long seed)
//         pattern_invert(unsigned long long *words, unsigned long long n)                      every bit flipped
//         pattern_verify(const unsigned long long *words, unsigned long long n, unsigned long long seed,
//                        unsigned long long flip, unsigned long long *found)
//         The word at i is splitmix64(seed + i), then XOR flip: 0 after a write, ~0 after an inversion.
//         found[0] counts wrong words and must be 0 before the launch; found[1] is the lowest wrong index and must be ~0;
//         found[2] gathers every bit that was wrong and must be 0.
// Launch: block (256, 1, 1), any grid (g, 1, 1): every thread steps by the grid.
// Verify: found is {0, ~0, 0}. A word changed on purpose must be counted, and its index and bits be named.

__device__ __forceinline__ unsigned long long splitmix64(unsigned long long value)
{
    value += 0x9e3779b97f4a7c15ull;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
    return value ^ (value >> 31);
}

#define EACH(at, n)                                                                                                    \
    for (unsigned long long at = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; at < n;                    \
         at += (unsigned long long)gridDim.x * blockDim.x)

extern "C" __global__ void pattern_write(unsigned long long *words, unsigned long long n, unsigned long long seed)
{
    EACH(at, n)
    words[at] = splitmix64(seed + at);
}

extern "C" __global__ void pattern_invert(unsigned long long *words, unsigned long long n)
{
    EACH(at, n)
    words[at] = ~words[at];
}

extern "C" __global__ void pattern_verify(const unsigned long long *words, unsigned long long n, unsigned long long seed,
                                          unsigned long long flip, unsigned long long *found)
{
    EACH(at, n)
    {
        const unsigned long long wrong = words[at] ^ splitmix64(seed + at) ^ flip;
        if (wrong != 0) {
            atomicAdd(&found[0], 1ull);
            atomicMin(&found[1], at);
            atomicOr(&found[2], wrong);
        }
    }
}
