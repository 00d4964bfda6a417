// gemm_f32: C = A x B in fp32 with shared-memory tiles.
//
// Proves: fp32 arithmetic, shared memory, barriers and the launch path itself.
// Entry:  gemm_f32(const float *a, const float *b, float *c, int m, int n, int k)
//         a is m x k, b is k x n, c is m x n, all row-major and dense. Any size of at least 1.
// Launch: block (16, 16, 1), grid (ceil(n / 64), ceil(m / 64), 1), no dynamic shared memory.
// Verify: with integers in -8..8 every sum is exact while k * 64 < 2^24: compare bit for bit with the CPU. With random
//         inputs in -1..1: relative Frobenius error under 1e-5 against fp64.

#define TILE 64
#define DEPTH 16
#define SIDE 16
#define EACH (TILE / SIDE)

extern "C" __global__ void __launch_bounds__(SIDE * SIDE)
    gemm_f32(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ float left[DEPTH][TILE + 1];
    __shared__ float right[DEPTH][TILE + 1];
    const int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    const int x = threadIdx.x, y = threadIdx.y, thread = y * SIDE + x;
    float sum[EACH][EACH];
    for (int i = 0; i < EACH; ++i)
        for (int j = 0; j < EACH; ++j)
            sum[i][j] = 0.0f;

    for (int start = 0; start < k; start += DEPTH) {
#pragma unroll 1
        for (int at = thread; at < TILE * DEPTH; at += SIDE * SIDE) {
            const int r = at / DEPTH, d = at % DEPTH;
            const bool inside = row + r < m && start + d < k;
            left[d][r] = inside ? a[(long long)(row + r) * k + start + d] : 0.0f;
        }
#pragma unroll 1
        for (int at = thread; at < TILE * DEPTH; at += SIDE * SIDE) {
            const int d = at / TILE, q = at % TILE;
            const bool inside = start + d < k && column + q < n;
            right[d][q] = inside ? b[(long long)(start + d) * n + column + q] : 0.0f;
        }
        __syncthreads();
#pragma unroll 1
        for (int d = 0; d < DEPTH; ++d)
            for (int i = 0; i < EACH; ++i)
                for (int j = 0; j < EACH; ++j)
                    sum[i][j] += left[d][y + i * SIDE] * right[d][x + j * SIDE];
        __syncthreads();
    }
    for (int i = 0; i < EACH; ++i)
        for (int j = 0; j < EACH; ++j) {
            const int r = row + y + i * SIDE, q = column + x + j * SIDE;
            if (r < m && q < n)
                c[(long long)r * n + q] = sum[i][j];
        }
}
