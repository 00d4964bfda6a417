/* A libcudnn that convolves on the processor, for tests with the fake libcuda. Without FAKE_COMPUTE it says success and does
 * nothing; with it the work is queued, as a real one returns before it is done. FAKE_WRONG: one element is wrong. FAKE_CUDNN_REFUSES: no algorithm is offered, as cuDNN 9 says it. */
#include "fake_client.h"
#include <math.h>
#include <stdint.h>

struct tensor { int kind, last, size[4]; };
struct convolution { int pad[2], stride[2], dilation[2], groups, math; };

size_t cudnnGetVersion(void) { return 91002; }
int cudnnCreate(void **handle) { *handle = (void *)0x6000; return context_now() ? 0 : 1001; }
int cudnnCreateTensorDescriptor(struct tensor **tensor) { *tensor = calloc(1, sizeof **tensor); return 0; }
int cudnnCreateFilterDescriptor(struct tensor **filter) { *filter = calloc(1, sizeof **filter); return 0; }
int cudnnCreateConvolutionDescriptor(struct convolution **conv) { *conv = calloc(1, sizeof **conv); return 0; }
int cudnnSetTensor4dDescriptor(struct tensor *tensor, int format, int kind, int n, int c, int h, int w)
{
    *tensor = (struct tensor){kind, format, {n, c, h, w}};
    return (kind == 0 || kind == 2) && (format == 0 || format == 1) ? 0 : 2000;
}
int cudnnSetFilter4dDescriptor(struct tensor *filter, int kind, int format, int k, int c, int h, int w)
{
    return cudnnSetTensor4dDescriptor(filter, format, kind, k, c, h, w);
}
int cudnnSetConvolution2dDescriptor(struct convolution *conv, int pad_h, int pad_w, int u, int v, int dilation_h,
                                    int dilation_w, int mode, int compute)
{
    *conv = (struct convolution){{pad_h, pad_w}, {u, v}, {dilation_h, dilation_w}, 1, 0};
    return mode == 1 && compute == 0 ? 0 : 2000;
}
int cudnnSetConvolutionGroupCount(struct convolution *conv, int groups) { conv->groups = groups; return groups > 0 ? 0 : 2000; }
int cudnnSetConvolutionMathType(struct convolution *conv, int math) { conv->math = math; return math == 1 || math == 3 ? 0 : 2000; }

static int workspace(size_t *bytes) { *bytes = 64; return getenv("FAKE_CUDNN_REFUSES") ? 3000 : 0; }
int cudnnGetConvolutionForwardWorkspaceSize(void *handle, void *x, void *w, void *conv, void *y, int algorithm, size_t *bytes)
{
    return handle && x && w && conv && y && algorithm >= 0 ? workspace(bytes) : 2000;
}
int cudnnGetConvolutionBackwardDataWorkspaceSize(void *h, void *w, void *dy, void *conv, void *dx, int algorithm, size_t *bytes)
{
    return cudnnGetConvolutionForwardWorkspaceSize(h, dx, w, conv, dy, algorithm, bytes);
}
int cudnnGetConvolutionBackwardFilterWorkspaceSize(void *h, void *x, void *dy, void *conv, void *dw, int algorithm, size_t *bytes)
{
    return cudnnGetConvolutionForwardWorkspaceSize(h, x, dw, conv, dy, algorithm, bytes);
}

static size_t place(const struct tensor *t, int n, int c, int h, int w)
{
    const int *s = t->size;
    return t->last ? (((size_t)n * s[2] + h) * s[3] + w) * s[1] + c : (((size_t)n * s[1] + c) * s[2] + h) * s[3] + w;
}
/* How far the next channel lies. */
static size_t channel(const struct tensor *t) { return t->last ? 1 : (size_t)t->size[2] * t->size[3]; }
static size_t elements(const struct tensor *t) { return (size_t)t->size[0] * t->size[1] * t->size[2] * t->size[3]; }
/* A tensor's numbers. */
static float *numbers(const struct tensor *t, const void *data)
{
    float *all = malloc(elements(t) * sizeof *all);
    if (t->kind == 0)
        return memcpy(all, data, elements(t) * sizeof *all);
    for (size_t at = 0; at < elements(t); ++at) {
        const uint16_t bits = ((const uint16_t *)data)[at];
        const int exponent = bits >> 10 & 31, fraction = bits & 1023;
        const float value = exponent ? ldexpf(1024 + fraction, exponent - 25) : ldexpf(fraction, -24);
        all[at] = bits >> 15 ? -value : value;
    }
    return all;
}
/* Whole numbers below 2048 only. */
static uint16_t half(float value)
{
    int exponent;
    const float fraction = frexpf(fabsf(value), &exponent);
    const uint16_t sign = value < 0 ? 0x8000 : 0;
    return value == 0 ? 0 : sign | (uint16_t)((exponent + 14) << 10) | (uint16_t)(ldexpf(fraction, 11) - 1024);
}

/* Descriptors may be changed once a call has returned: it has its own. */
struct work { int which; struct tensor tx, tw, ty; struct convolution conv; void *x, *w, *y; };

/* which: 0 y, 1 x, 2 w is sought. */
static void convolve(void *arguments)
{
    const struct work *own = arguments;
    const int which = own->which;
    const struct tensor *tx = &own->tx, *tw = &own->tw, *ty = &own->ty;
    const struct convolution *conv = &own->conv;
    void *x = own->x, *w = own->w, *y = own->y;
    const struct tensor *sought = which == 0 ? ty : which == 1 ? tx : tw;
    void *target = which == 0 ? y : which == 1 ? x : w;
    const size_t count = elements(sought);
    double *sums = calloc(count, sizeof *sums);
    float *vx = numbers(tx, x), *vw = numbers(tw, w), *vy = numbers(ty, y);
    const int per = tw->size[0] / conv->groups;
    for (int n = 0; n < ty->size[0]; ++n)
    for (int k = 0; k < ty->size[1]; ++k)
    for (int p = 0; p < ty->size[2]; ++p)
    for (int q = 0; q < ty->size[3]; ++q)
    for (int r = 0; r < tw->size[2]; ++r)
    for (int s = 0; s < tw->size[3]; ++s) {
        const int row = p * conv->stride[0] - conv->pad[0] + r * conv->dilation[0];
        const int column = q * conv->stride[1] - conv->pad[1] + s * conv->dilation[1];
        if (row < 0 || row >= tx->size[2] || column < 0 || column >= tx->size[3])
            continue;
        const size_t ax = place(tx, n, k / per * tw->size[1], row, column), aw = place(tw, k, 0, r, s);
        const size_t ay = place(ty, n, k, p, q), next_x = channel(tx), next_w = channel(tw);
        for (int c = 0; c < tw->size[1]; ++c)
            if (which == 0)
                sums[ay] += (double)vx[ax + c * next_x] * vw[aw + c * next_w];
            else if (which == 1)
                sums[ax + c * next_x] += (double)vy[ay] * vw[aw + c * next_w];
            else
                sums[aw + c * next_w] += (double)vy[ay] * vx[ax + c * next_x];
    }
    const int strided = conv->stride[0] != 1 || conv->stride[1] != 1;
    if (getenv("FAKE_WRONG") || (which == 0 && tx->kind == 2 && MUTATION("forward-half-is-wrong")) ||
        (which == 1 && conv->groups > 1 && MUTATION("data-forgets-groups")) ||
        (which == 2 && strided && MUTATION("filter-forgets-stride")))
        sums[count / 2] += 1;
    for (size_t at = 0; at < count; ++at)
        if (sought->kind == 0)
            ((float *)target)[at] = (float)sums[at];
        else
            ((uint16_t *)target)[at] = half((float)sums[at]);
    free(sums);
    free(vx);
    free(vw);
    free(vy);
}

static int run(int which, const struct tensor *tx, void *x, const struct tensor *tw, void *w, const struct convolution *conv,
               const struct tensor *ty, void *y)
{
    const struct work own = {which, *tx, *tw, *ty, *conv, x, w, y};
    if (tw->size[1] * conv->groups != tx->size[1] || ty->size[1] != tw->size[0] || ty->size[0] != tx->size[0])
        return 2000;
    return enqueue(0, convolve, &own, sizeof own);
}

static int scales(const float *alpha, const float *beta) { return *alpha == 1 && *beta == 0; }

int cudnnConvolutionForward(void *handle, const float *alpha, const struct tensor *tx, void *x, const struct tensor *tw,
                            void *w, const struct convolution *conv, int algorithm, void *space, size_t bytes,
                            const float *beta, const struct tensor *ty, void *y)
{
    return handle && scales(alpha, beta) && algorithm == 1 && space && bytes == 64 ? run(0, tx, x, tw, w, conv, ty, y) : 2000;
}
int cudnnConvolutionBackwardData(void *handle, const float *alpha, const struct tensor *tw, void *w, const struct tensor *ty,
                                 void *y, const struct convolution *conv, int algorithm, void *space, size_t bytes,
                                 const float *beta, const struct tensor *tx, void *x)
{
    return handle && scales(alpha, beta) && algorithm == 1 && space && bytes == 64 ? run(1, tx, x, tw, w, conv, ty, y) : 2000;
}
int cudnnConvolutionBackwardFilter(void *handle, const float *alpha, const struct tensor *tx, void *x,
                                   const struct tensor *ty, void *y, const struct convolution *conv, int algorithm,
                                   void *space, size_t bytes, const float *beta, const struct tensor *tw, void *w)
{
    return handle && scales(alpha, beta) && algorithm == 1 && space && bytes == 64 ? run(2, tx, x, tw, w, conv, ty, y) : 2000;
}
