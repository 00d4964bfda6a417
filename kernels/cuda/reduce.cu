// reduce: many values in, one out.
//
// Proves: warp shuffles, shared memory and atomics in device memory.
// Entry:  sum_u32(const unsigned *x, unsigned long long *sum, unsigned long long n)      exact, in any order
//         sum_f32(const float *x, float *sum, unsigned long long n)
//         *sum must be 0 before the launch.
// Launch: block (256, 1, 1), any grid (g, 1, 1): every thread steps by the grid.
// Verify: sum_u32 equals the CPU's sum. sum_f32 with integers whose absolute values sum to less than 2^24 is exact in any
//         order: bit for bit.

template <typename Number> __device__ __forceinline__ Number sum_of_block(Number value)
{
    __shared__ Number of_warp[8];
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_down_sync(0xffffffffu, value, distance);
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    Number sum = 0;
    if (threadIdx.x == 0)
        for (int warp = 0; warp < 8; ++warp)
            sum += of_warp[warp];
    return sum;
}

extern "C" __global__ void __launch_bounds__(256) sum_u32(const unsigned *x, unsigned long long *sum, unsigned long long n)
{
    unsigned long long own = 0;
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long at = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; at < n; at += step)
        own += x[at];
    own = sum_of_block(own);
    if (threadIdx.x == 0)
        atomicAdd(sum, own);
}

extern "C" __global__ void __launch_bounds__(256) sum_f32(const float *x, float *sum, unsigned long long n)
{
    float own = 0.0f;
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long at = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; at < n; at += step)
        own += x[at];
    own = sum_of_block(own);
    if (threadIdx.x == 0)
        atomicAdd(sum, own);
}
