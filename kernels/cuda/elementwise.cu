// elementwise: one value in, one value out.
//
// Proves: the plainest kernel there is, and the chip's division and square root.
// Entry:  axpy_f32(float a, const float *x, float *y, unsigned long long n)     y = a x + y, one rounding (fma)
//         divide_sqrt_f32(const float *x, float *y, unsigned long long n)       y = sqrt(x) / (1 + x), each rounded
// Launch: block (256, 1, 1), any grid (g, 1, 1): every thread steps by the grid.
// Verify: both are defined by IEEE 754: bit for bit with the CPU's mul_add, and with its sqrt, add and divide (x >= 0).

extern "C" __global__ void axpy_f32(float a, const float *x, float *y, unsigned long long n)
{
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long at = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; at < n; at += step)
        y[at] = __fmaf_rn(a, x[at], y[at]);
}

extern "C" __global__ void divide_sqrt_f32(const float *x, float *y, unsigned long long n)
{
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long at = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; at < n; at += step)
        y[at] = __fdiv_rn(__fsqrt_rn(x[at]), __fadd_rn(1.0f, x[at]));
}
