// conv_direct: two-dimensional convolution forward, one thread for each output.
//
// Proves: the reference convolution on the chip, with groups, stride, padding and dilation.
// Entry:  conv_direct(const float *x, const float *w, float *y, int n, int c, int h, int width, int k, int r, int s,
//                     int groups, int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w)
//         x is n x c x h x width, w is k x (c / groups) x r x s, y is n x k x p x q, all dense (NCHW, KCRS), where
//         p = (h + 2 pad_h - dilation_h (r - 1) - 1) / stride_h + 1, and q likewise.
//         It is what frameworks call convolution: the filter is not flipped. groups divides c and k.
// Launch: block (256, 1, 1), grid (ceil(n k p q / 256), 1, 1).
// Verify: with integers in -8..8 every sum is exact while (c / groups) r s * 64 < 2^24: compare bit for bit with the
//         CPU, with conv_implicit and with cuDNN's exact algorithm.

extern "C" __global__ void conv_direct(const float *x, const float *w, float *y, int n, int c, int h, int width, int k,
                                       int r, int s, int groups, int stride_h, int stride_w, int pad_h, int pad_w,
                                       int dilation_h, int dilation_w)
{
    const int p = (h + 2 * pad_h - dilation_h * (r - 1) - 1) / stride_h + 1;
    const int q = (width + 2 * pad_w - dilation_w * (s - 1) - 1) / stride_w + 1;
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= (long long)n * k * p * q)
        return;
    const int column = at % q, row = at / q % p, filter = at / q / p % k, image = at / q / p / k;
    const int channels = c / groups, first = filter / (k / groups) * channels;

    float sum = 0.0f;
    for (int channel = 0; channel < channels; ++channel)
        for (int i = 0; i < r; ++i)
#pragma unroll 1
            for (int j = 0; j < s; ++j) {
                const int from_row = row * stride_h - pad_h + i * dilation_h;
                const int from_column = column * stride_w - pad_w + j * dilation_w;
                if (from_row < 0 || from_row >= h || from_column < 0 || from_column >= width)
                    continue;
                sum += x[(((long long)image * c + first + channel) * h + from_row) * width + from_column] *
                       w[(((long long)filter * channels + channel) * r + i) * s + j];
            }
    y[at] = sum;
}
