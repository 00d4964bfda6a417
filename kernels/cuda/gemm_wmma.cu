// gemm_wmma: C = A x B on the tensor cores, by PTX written inline: no header of CUDA is needed.
//
// Proves: the tensor cores of the chip, with fp16 from capability 7.0, bf16 and tf32 from 8.0.
// Entry:  gemm_wmma_f16 (const unsigned short *a, const unsigned short *b, float *c, int m, int n, int k)   from 7.0
//         gemm_wmma_bf16(const unsigned short *a, const unsigned short *b, float *c, int m, int n, int k)   from 8.0
//         gemm_wmma_tf32(const float *a, const float *b, float *c, int m, int n, int k)                     from 8.0
//         a is m x k, b is k x n, c is m x n, all row-major and dense; fp16 and bf16 as their bits; c is fp32.
//         m, n and k must be multiples of 16; pointers aligned to 32 bytes, as cuMemAlloc gives them.
//         tf32 rounds its fp32 inputs itself (to nearest, ties away from zero).
// Launch: block (128, 1, 1), grid (ceil(n / 32), ceil(m / 32), 1): each of four warps makes one tile of 16 x 16.
// Verify: with integers in -8..8 every sum is exact while k * 64 < 2^24: compare bit for bit with the CPU. With random
//         inputs in -1..1, against fp64 of the unrounded inputs: relative Frobenius error under 1e-3 for fp16 and tf32,
//         8e-3 for bf16.

#define TILE 16

// The tile of this warp: true if it lies inside.
__device__ __forceinline__ bool own_tile(int m, int n, int *row, int *column)
{
    const int warp = threadIdx.x / 32;
    *row = blockIdx.y * 2 * TILE + warp / 2 * TILE;
    *column = blockIdx.x * 2 * TILE + warp % 2 * TILE;
    return *row < m && *column < n;
}

#define SUMS(v) "+f"(v[0]), "+f"(v[1]), "+f"(v[2]), "+f"(v[3]), "+f"(v[4]), "+f"(v[5]), "+f"(v[6]), "+f"(v[7])

#define STORE(shape, c, sum, stride)                                                                                   \
    asm volatile("wmma.store.d.sync.aligned.row." shape ".f32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8}, %9;"            \
                 :                                                                                                     \
                 : "l"(c), "f"(sum[0]), "f"(sum[1]), "f"(sum[2]), "f"(sum[3]), "f"(sum[4]), "f"(sum[5]), "f"(sum[6]), \
                   "f"(sum[7]), "r"(stride)                                                                            \
                 : "memory")

#if __CUDA_ARCH__ >= 700

#define LOAD_8(side, v, p, stride)                                                                                     \
    asm volatile("wmma.load." side ".sync.aligned.row.m16n16k16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"      \
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]), "=r"(v[4]), "=r"(v[5]), "=r"(v[6]), "=r"(v[7])     \
                 : "l"(p), "r"(stride)                                                                                 \
                 : "memory")

extern "C" __global__ void gemm_wmma_f16(const unsigned short *a, const unsigned short *b, float *c, int m, int n, int k)
{
    int row, column;
    if (!own_tile(m, n, &row, &column))
        return;
    float sum[8] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 1
    for (int start = 0; start < k; start += 16) {
        unsigned left[8], right[8];
        LOAD_8("a", left, a + (long long)row * k + start, k);
        LOAD_8("b", right, b + (long long)start * n + column, n);
        asm volatile("wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, "
                     "{%8, %9, %10, %11, %12, %13, %14, %15}, {%16, %17, %18, %19, %20, %21, %22, %23}, "
                     "{%0, %1, %2, %3, %4, %5, %6, %7};"
                     : SUMS(sum)
                     : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(left[4]), "r"(left[5]), "r"(left[6]),
                       "r"(left[7]), "r"(right[0]), "r"(right[1]), "r"(right[2]), "r"(right[3]), "r"(right[4]),
                       "r"(right[5]), "r"(right[6]), "r"(right[7]));
    }
    STORE("m16n16k16", c + (long long)row * n + column, sum, n);
}

#endif

#if __CUDA_ARCH__ >= 800

#define LOAD_4(side, kind, v, p, stride)                                                                               \
    asm volatile("wmma.load." side ".sync.aligned.row." kind " {%0, %1, %2, %3}, [%4], %5;"                           \
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])                                                      \
                 : "l"(p), "r"(stride)                                                                                 \
                 : "memory")

#define MULTIPLY_4(kind, sum, left, right)                                                                             \
    asm volatile("wmma.mma.sync.aligned.row.row." kind " {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, "      \
                 "{%12, %13, %14, %15}, {%0, %1, %2, %3, %4, %5, %6, %7};"                                            \
                 : SUMS(sum)                                                                                           \
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]),              \
                   "r"(right[2]), "r"(right[3]))

extern "C" __global__ void gemm_wmma_bf16(const unsigned short *a, const unsigned short *b, float *c, int m, int n, int k)
{
    int row, column;
    if (!own_tile(m, n, &row, &column))
        return;
    float sum[8] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 1
    for (int start = 0; start < k; start += 16) {
        unsigned left[4], right[4];
        LOAD_4("a", "m16n16k16.bf16", left, a + (long long)row * k + start, k);
        LOAD_4("b", "m16n16k16.bf16", right, b + (long long)start * n + column, n);
        MULTIPLY_4("m16n16k16.f32.bf16.bf16.f32", sum, left, right);
    }
    STORE("m16n16k16", c + (long long)row * n + column, sum, n);
}

__device__ __forceinline__ void round_to_tf32(unsigned *values)
{
    for (int i = 0; i < 4; ++i)
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(values[i]) : "f"(__uint_as_float(values[i])));
}

extern "C" __global__ void gemm_wmma_tf32(const float *a, const float *b, float *c, int m, int n, int k)
{
    int row, column;
    if (!own_tile(m, n, &row, &column))
        return;
    float sum[8] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 1
    for (int start = 0; start < k; start += 8) {
        unsigned left[4], right[4];
        LOAD_4("a", "m16n16k8.tf32", left, a + (long long)row * k + start, k);
        LOAD_4("b", "m16n16k8.tf32", right, b + (long long)start * n + column, n);
        round_to_tf32(left);
        round_to_tf32(right);
        MULTIPLY_4("m16n16k8.f32.tf32.tf32.f32", sum, left, right);
    }
    STORE("m16n16k8", c + (long long)row * n + column, sum, n);
}

#endif
