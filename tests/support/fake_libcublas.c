/* A libcublas and libcublasLt that multiply on the processor, for tests with the fake libcuda: by columns, with leading
 * dimensions and transposition, as the real ones read their parameters. Without FAKE_COMPUTE they say success and do
 * nothing; with it the work is queued, as a real one returns before it is done. A handle belongs to the context in which it
 * was made. FAKE_WRONG: one element is wrong. FAKE_LT_RC: what the heuristic of
 * cuBLASLt returns. FAKE_CREATE_RC: what
 * cublasCreate returns. FAKE_NO_FAST: fast accumulation is refused. Compiled with VERSION=10202 it is cuBLAS 10, which takes the sum's data type as
 * the compute type. */
#ifndef VERSION
#define VERSION 120804
#endif
#include "fake_client.h"
#include <math.h>
#include <stdint.h>

/* What sixteen bits mean in half precision. */
static double half(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double value = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return bits >> 15 ? -value : value;
}

static double element(int kind, const void *matrix, size_t at)
{
    static double halves[1 << 16];
    if (kind == 2 && halves[1] == 0)
        for (int bits = 0; bits < 1 << 16; ++bits)
            halves[bits] = half((uint16_t)bits);
    switch (kind) {
    case 0: return ((const float *)matrix)[at];
    case 1: return ((const double *)matrix)[at];
    case 3: return ((const int8_t *)matrix)[at];
    case 2: return halves[((const uint16_t *)matrix)[at]];
    case 14: {
        const uint32_t wide = (uint32_t)((const uint16_t *)matrix)[at] << 16;
        float value;
        memcpy(&value, &wide, 4);
        return value;
    }
    case 28: {
        const uint8_t bits = ((const uint8_t *)matrix)[at];
        if (MUTATION("fp8-is-e5m2")) {
            const int exponent = bits >> 2 & 31, fraction = bits & 3;
            const double value = exponent ? ldexp(4 + fraction, exponent - 17) : ldexp(fraction, -16);
            return bits >> 7 ? -value : value;
        }
        const int exponent = bits >> 3 & 15, fraction = bits & 7;
        const double value = exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
        return bits >> 7 ? -value : value;
    }
    default: return NAN;
    }
}

/* A number with so many bits of precision; its range is not passed here. */
static double kept(double value, int bits)
{
    int exponent;
    const double fraction = frexp(value, &exponent);
    return ldexp(nearbyint(ldexp(fraction, bits)), exponent - bits);
}

/* The product of a column and a number, added: all the time of the tests goes here. */
__attribute__((target_clones("avx2", "default"), optimize("O3"))) static void add(double *restrict sums, const double *restrict left,
                                                                                   double factor, int count)
{
    for (int i = 0; i < count; ++i)
        sums[i] += left[i] * factor;
}

struct product {
    int turn, m, n, k, kind, output, compute;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
};

/* Columns, a times b; a is turned if asked. */
static void multiply(void *arguments)
{
    const struct product *own = arguments;
    const int m = own->m, n = own->n, k = own->k, kind = own->kind, large = m >= 1024;
    double *left = malloc((size_t)m * k * sizeof *left), *sums = malloc(m * sizeof *sums);
    /* Bits that inputs and partial sums keep; 0: all. */
    int inputs = 0, partial = 0;
    if (kind == 1 && MUTATION("fp64-in-fp32"))
        inputs = 24;
    if (kind == 0 && own->compute == 68 && MUTATION("fp32-in-tf32"))
        inputs = 11;
    if (kind == 0 && own->compute == 77 && MUTATION("tf32-in-bf16"))
        inputs = 8;
    if (kind == 2 && !large && MUTATION("fp16-sums-in-fp16"))
        partial = 11;
    for (int l = 0; l < k; ++l)
        for (int i = 0; i < m; ++i) {
            const double value = element(kind, own->a, own->turn ? (size_t)i * own->lda + l : (size_t)l * own->lda + i);
            left[(size_t)l * m + i] = inputs ? kept(value, inputs) : value;
        }
    for (int j = 0; j < n; ++j) {
        memset(sums, 0, m * sizeof *sums);
        for (int l = 0; l < k; ++l) {
            const double value = element(kind, own->b, (size_t)j * own->ldb + l);
            const double factor = inputs ? kept(value, inputs) : value;
            add(sums, left + (size_t)l * m, factor, m);
            for (int i = 0; partial && i < m; ++i)
                sums[i] = kept(sums[i], partial);
        }
        if (j == n - 1)
            sums[1] += getenv("FAKE_WRONG") || (kind == 14 && !large && MUTATION("bf16-wrong-element"));
        if (j == n - 1 && large && MUTATION("last-tile-is-wrong"))
            sums[m - 1] += 1;
        for (int i = 0; i < m; ++i) {
            const size_t at = (size_t)j * own->ldc + i;
            const double value = kind == 3 && MUTATION("int8-saturates") ? fmin(fmax(sums[i], -2048), 2047) : sums[i];
            if (own->output == 1)
                ((double *)own->c)[at] = value;
            else if (own->output == 10)
                ((int32_t *)own->c)[at] = (int32_t)value;
            else
                ((float *)own->c)[at] = (float)value;
        }
    }
    free(left);
    free(sums);
}

struct handle { void *context; };
int cublasCreate_v2(struct handle **handle)
{
    *handle = malloc(sizeof **handle);
    (*handle)->context = context_now();
    if (getenv("FAKE_CREATE_RC"))
        return atoi(getenv("FAKE_CREATE_RC"));
    return (*handle)->context ? 0 : 1;
}
int cublasGetVersion_v2(struct handle *handle, int *version) { *version = handle ? VERSION : 0; return 0; }
int cublasGemmEx(struct handle *handle, int turn_a, int turn_b, int m, int n, int k, const void *alpha, const void *a, int kind_a,
                 int lda, const void *b, int kind_b, int ldb, const void *beta, void *c, int kind_c, int ldc, int compute,
                 int algorithm)
{
    const int modern = kind_a == 1 ? 70 : kind_a == 3 ? 72 : compute == 77 ? 77 : 68;
    const int expected = VERSION >= 11000 ? modern : kind_a == 1 ? 1 : kind_a == 3 ? 10 : 0;
    if (!handle || kind_a != kind_b || turn_b || algorithm != -1 || compute != expected)
        return 7;
    if (kind_a == 1 ? *(double *)alpha != 1 || *(double *)beta != 0
                      : kind_a == 3 ? *(int *)alpha != 1 || *(int *)beta != 0 : *(float *)alpha != 1 || *(float *)beta != 0)
        return 7;
    if (lda < (turn_a ? k : m) || ldb < k || ldc < m)
        return 7;
    if (handle->context != context_now())
        return 14;
    const struct product own = {turn_a, m, n, k, kind_a, kind_c, compute, a, b, c, lda, ldb, ldc};
    return enqueue(0, multiply, &own, sizeof own);
}

struct layout { int kind; uint64_t rows, columns; int64_t leading; };
struct operation { int turn_a, fast; };
struct answer { uint64_t algorithm[8]; size_t workspace; int state; float waves; int reserved[4]; };

int cublasLtCreate(void **handle) { *handle = (void *)0x4000; return 0; }
int cublasLtMatmulDescCreate(struct operation **operation, int compute, int scale)
{
    *operation = calloc(1, sizeof **operation);
    return compute == 68 && scale == 0 ? 0 : 7;
}
int cublasLtMatmulDescSetAttribute(struct operation *operation, int attribute, const void *value, size_t size)
{
    /* CUBLASLT_MATMUL_DESC_FAST_ACCUM */
    if (attribute == 25 && size == 1) {
        operation->fast = *(const int8_t *)value;
        return 0;
    }
    if (attribute != 3 || size != sizeof(int))
        return 7;
    operation->turn_a = *(const int *)value;
    return 0;
}
int cublasLtMatrixLayoutCreate(struct layout **layout, int kind, uint64_t rows, uint64_t columns, int64_t leading)
{
    *layout = malloc(sizeof **layout);
    **layout = (struct layout){kind, rows, columns, leading};
    return leading < (int64_t)rows ? 7 : 0;
}
int cublasLtMatmulPreferenceCreate(void **preference) { *preference = (void *)0x5000; return 0; }
int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *value, size_t size)
{
    return preference && value && attribute == 1 && size == 8 ? 0 : 7;
}
int cublasLtMatmulAlgoGetHeuristic(void *handle, struct operation *operation, struct layout *a, struct layout *b,
                                   struct layout *c, struct layout *d, void *preference, int asked, struct answer *answers,
                                   int *count)
{
    if (!handle || !operation || !a || !b || c != d || !preference || asked != 1)
        return 7;
    if (getenv("FAKE_LT_RC"))
        return atoi(getenv("FAKE_LT_RC"));
    if (operation->fast && getenv("FAKE_NO_FAST"))
        return 7;
    memset(answers, 0, sizeof *answers);
    answers->algorithm[7] = 0x5eed;
    *count = 1;
    return 0;
}
int cublasLtMatmul(void *handle, struct operation *operation, const float *alpha, const void *a, struct layout *la,
                   const void *b, struct layout *lb, const float *beta, const void *c, struct layout *lc, void *d,
                   struct layout *ld, const uint64_t *algorithm, void *workspace, size_t bytes, void *stream)
{
    const uint64_t depth = operation->turn_a ? la->rows : la->columns;
    if (!handle || *alpha != 1 || *beta != 0 || c != d || lc != ld || algorithm[7] != 0x5eed || !workspace || !bytes || stream)
        return 7;
    if (depth != lb->rows || ld->rows != (operation->turn_a ? la->columns : la->rows) || ld->columns != lb->columns)
        return 7;
    const struct product own = {operation->turn_a, (int)ld->rows, (int)ld->columns, (int)depth, la->kind, ld->kind, 68, a, b, d,
                                la->leading, lb->leading, ld->leading};
    return enqueue(stream, multiply, &own, sizeof own);
}
