/* A libcublas and libcublasLt that multiply on the processor, for tests with the fake libcuda: by columns, with leading
 * dimensions and transposition, as the real ones read their parameters. Without FAKE_COMPUTE they say success and do
 * nothing. FAKE_WRONG: one element is wrong. FAKE_LT_RC: what the heuristic of
 * cuBLASLt returns. FAKE_NO_FAST: fast accumulation is refused. Compiled with VERSION=10202 it is cuBLAS 10, which takes the sum's data type as
 * the compute type. */
#ifndef VERSION
#define VERSION 120804
#endif
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static double element(int kind, const void *matrix, size_t at)
{
    switch (kind) {
    case 0: return ((const float *)matrix)[at];
    case 1: return ((const double *)matrix)[at];
    case 3: return ((const int8_t *)matrix)[at];
    case 2: {
        const uint16_t bits = ((const uint16_t *)matrix)[at];
        const int exponent = bits >> 10 & 31, fraction = bits & 1023;
        const double value = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
        return bits >> 15 ? -value : value;
    }
    case 14: {
        const uint32_t wide = (uint32_t)((const uint16_t *)matrix)[at] << 16;
        float value;
        memcpy(&value, &wide, 4);
        return value;
    }
    case 28: {
        const uint8_t bits = ((const uint8_t *)matrix)[at];
        const int exponent = bits >> 3 & 15, fraction = bits & 7;
        const double value = exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
        return bits >> 7 ? -value : value;
    }
    default: return NAN;
    }
}

/* Columns, a times b; a is turned if asked. */
static int multiply(int turn, int m, int n, int k, const void *a, int kind, int64_t lda, const void *b, int64_t ldb, void *c,
                    int output, int64_t ldc)
{
    double *left = malloc((size_t)m * k * sizeof *left), *sums = malloc(m * sizeof *sums);
    if (!getenv("FAKE_COMPUTE"))
        return 0;
    for (int l = 0; l < k; ++l)
        for (int i = 0; i < m; ++i)
            left[(size_t)l * m + i] = element(kind, a, turn ? (size_t)i * lda + l : (size_t)l * lda + i);
    for (int j = 0; j < n; ++j) {
        memset(sums, 0, m * sizeof *sums);
        for (int l = 0; l < k; ++l) {
            const double factor = element(kind, b, (size_t)j * ldb + l);
            for (int i = 0; i < m; ++i)
                sums[i] += left[(size_t)l * m + i] * factor;
        }
        for (int i = 0; i < m; ++i) {
            const size_t at = (size_t)j * ldc + i;
            const double value = sums[i] + (getenv("FAKE_WRONG") && i == 1 && j == n - 1);
            if (output == 1)
                ((double *)c)[at] = value;
            else if (output == 10)
                ((int32_t *)c)[at] = (int32_t)value;
            else
                ((float *)c)[at] = (float)value;
        }
    }
    free(left);
    free(sums);
    return 0;
}

int cublasCreate_v2(void **handle) { *handle = (void *)0x3000; return 0; }
int cublasGetVersion_v2(void *handle, int *version) { *version = handle ? VERSION : 0; return 0; }
int cublasGemmEx(void *handle, int turn_a, int turn_b, int m, int n, int k, const void *alpha, const void *a, int kind_a,
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
    return multiply(turn_a, m, n, k, a, kind_a, lda, b, ldb, c, kind_c, ldc);
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
    return multiply(operation->turn_a, (int)ld->rows, (int)ld->columns, (int)depth, a, la->kind, la->leading, b, lb->leading,
                    d, ld->kind, ld->leading);
}
