// conv_implicit: two-dimensional convolution forward as a matrix product whose right side is gathered on the way.
//
// Proves: the same convolution as conv_direct by another path: tiles in shared memory, indices made on the chip.
// Entry:  conv_implicit(const float *x, const float *w, float *y, int n, int c, int h, int width, int k, int r, int s,
//                       int groups, int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w)
//         Parameters, shapes and layout are those of conv_direct.
// Launch: block (16, 16, 1), grid (ceil(n p q / 16), ceil(k / groups / 16), groups).
// Verify: as conv_direct, and bit for bit against it with integers.

#define TILE 16

extern "C" __global__ void conv_implicit(const float *x, const float *w, float *y, int n, int c, int h, int width,
                                         int k, int r, int s, int groups, int stride_h, int stride_w, int pad_h,
                                         int pad_w, int dilation_h, int dilation_w)
{
    __shared__ float left[TILE][TILE + 1];
    __shared__ float right[TILE][TILE + 1];
    const int p = (h + 2 * pad_h - dilation_h * (r - 1) - 1) / stride_h + 1;
    const int q = (width + 2 * pad_w - dilation_w * (s - 1) - 1) / stride_w + 1;
    const int channels = c / groups, filters = k / groups, depth = channels * r * s;
    const long long outputs = (long long)n * p * q;
    const int own_filter = blockIdx.y * TILE + threadIdx.y;
    const int filter = blockIdx.z * filters + own_filter;
    const long long output = (long long)blockIdx.x * TILE + threadIdx.x;
    const int column = output % q, row = output / q % p;
    const int image = output / q / p;

    float sum = 0.0f;
    for (int start = 0; start < depth; start += TILE) {
        const int by_column = start + threadIdx.x, by_row = start + threadIdx.y;
        left[threadIdx.y][threadIdx.x] =
            own_filter < filters && by_column < depth ? w[(long long)filter * depth + by_column] : 0.0f;
        float value = 0.0f;
        if (output < outputs && by_row < depth) {
            const int j = by_row % s, i = by_row / s % r, channel = blockIdx.z * channels + by_row / s / r;
            const int from_row = row * stride_h - pad_h + i * dilation_h;
            const int from_column = column * stride_w - pad_w + j * dilation_w;
            if (from_row >= 0 && from_row < h && from_column >= 0 && from_column < width)
                value = x[(((long long)image * c + channel) * h + from_row) * width + from_column];
        }
        right[threadIdx.y][threadIdx.x] = value;
        __syncthreads();
#pragma unroll 1
        for (int d = 0; d < TILE; ++d)
            sum += left[threadIdx.y][d] * right[d][threadIdx.x];
        __syncthreads();
    }
    if (own_filter < filters && output < outputs)
        y[(((long long)image * k + filter) * p + row) * q + column] = sum;
}
