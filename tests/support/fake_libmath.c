/* A libcufft, libcusolver, libcusparse and libcurand that compute on the processor, for tests with the fake libcuda: one source
 * for the four names. Work is queued, as real ones return before it is done; without FAKE_COMPUTE it is never done. Transforms
 * go by the definition, equations by Cholesky's factors, and numbers of Philox are those of another generator. */
#include "fake_client.h"
#include <math.h>
#include <stdint.h>

/* ---- cuFFT ---- */

struct plan { int size, is_double, direction; const void *from; void *to; };
static struct plan plans[64];
static int count_of_plans;

int cufftGetVersion(int *version) { *version = 11303; return 0; }
int cufftPlan1d(int *plan, int size, int kind, int batch)
{
    if (!context_now() || size < 1 || batch != 1 || (kind != 0x29 && kind != 0x69) || count_of_plans == 64)
        return 4;
    *plan = count_of_plans++;
    plans[*plan] = (struct plan){size, kind == 0x69, 0, 0, 0};
    return 0;
}
static double complex_part(const struct plan *own, int at)
{
    return own->is_double ? ((const double *)own->from)[at] : ((const float *)own->from)[at];
}
static void transform(void *arguments)
{
    const struct plan *own = arguments;
    const int size = own->size;
    double *answer = calloc(2 * size, sizeof *answer), *roots = malloc(2 * size * sizeof *roots);
    for (int at = 0; at < size; ++at) {
        roots[2 * at] = cos(2 * M_PI * at / size);
        roots[2 * at + 1] = own->direction * sin(2 * M_PI * at / size);
    }
    for (int at = 0; at < size; ++at) {
        const double real = complex_part(own, 2 * at), imaginary = complex_part(own, 2 * at + 1);
        for (int k = 0; k < size && (real != 0 || imaginary != 0); ++k) {
            const double *root = roots + 2 * ((size_t)at * k % size);
            answer[2 * k] += real * root[0] - imaginary * root[1];
            answer[2 * k + 1] += real * root[1] + imaginary * root[0];
        }
    }
    if (own->direction == 1 && MUTATION("inverse-is-scaled"))
        for (int at = 0; at < 2 * size; ++at)
            answer[at] /= size;
    for (int at = 0; at < 2 * size; ++at)
        if (own->is_double)
            ((double *)own->to)[at] = answer[at];
        else
            ((float *)own->to)[at] = (float)answer[at];
    free(answer);
    free(roots);
}
static int execute(int plan, const void *from, void *to, int direction, int is_double)
{
    if (plan < 0 || plan >= count_of_plans || plans[plan].is_double != is_double || (direction != 1 && direction != -1))
        return 1;
    struct plan own = plans[plan];
    own.direction = direction;
    own.from = from;
    own.to = to;
    return enqueue(0, transform, &own, sizeof own);
}
int cufftExecC2C(int plan, const void *from, void *to, int direction) { return execute(plan, from, to, direction, 0); }
int cufftExecZ2Z(int plan, const void *from, void *to, int direction) { return execute(plan, from, to, direction, 1); }
int cufftDestroy(int plan) { return plan >= 0 && plan < count_of_plans ? 0 : 1; }

/* ---- cuSOLVER ---- */

struct system { int size; double *matrix, *right; int *info; };

int cusolverGetVersion(int *version) { *version = 11704; return 0; }
int cusolverDnCreate(void **handle) { *handle = (void *)0x7000; return context_now() ? 0 : 1; }
int cusolverDnDpotrf_bufferSize(void *handle, int half, int size, double *matrix, int leading, int *elements)
{
    *elements = 16;
    return handle && half == 0 && matrix && leading >= size ? 0 : 3;
}
/* By columns, the lower half. */
static void factor(void *arguments)
{
    const struct system *own = arguments;
    const int n = own->size;
    double *a = own->matrix;
    *own->info = 0;
    for (int j = 0; j < n; ++j) {
        for (int k = 0; k < j; ++k)
            for (int i = j; i < n; ++i)
                a[(size_t)j * n + i] -= a[(size_t)k * n + i] * a[(size_t)k * n + j];
        if (a[(size_t)j * n + j] <= 0) {
            *own->info = j + 1;
            return;
        }
        const double root = sqrt(a[(size_t)j * n + j]);
        for (int i = j; i < n; ++i)
            a[(size_t)j * n + i] /= root;
    }
}
static void solve(void *arguments)
{
    const struct system *own = arguments;
    const int n = own->size;
    const double *a = own->matrix;
    double *x = own->right;
    for (int j = 0; j < n; ++j) {
        x[j] /= a[(size_t)j * n + j];
        for (int i = j + 1; i < n; ++i)
            x[i] -= a[(size_t)j * n + i] * x[j];
    }
    for (int j = n - 1; j >= 0; --j) {
        for (int i = j + 1; i < n; ++i)
            x[j] -= a[(size_t)j * n + i] * x[i];
        x[j] /= a[(size_t)j * n + j];
    }
    if (MUTATION("solution-is-in-fp32"))
        for (int j = 0; j < n; ++j)
            x[j] = (float)(x[j] * 1.0000001);
    *own->info = 0;
}
int cusolverDnDpotrf(void *handle, int half, int size, double *matrix, int leading, double *workspace, int elements, int *info)
{
    const struct system own = {size, matrix, 0, info};
    return handle && half == 0 && leading == size && workspace && elements == 16 ? enqueue(0, factor, &own, sizeof own) : 3;
}
int cusolverDnDpotrs(void *handle, int half, int size, int sides, const double *matrix, int leading, double *right, int leading_right,
                     int *info)
{
    const struct system own = {size, (double *)matrix, right, info};
    if (!handle || half != 0 || sides != 1 || leading != size || leading_right != size)
        return 3;
    return enqueue(0, solve, &own, sizeof own);
}

/* ---- cuSPARSE ---- */

struct matrix { int64_t rows, columns, elements; const int *begins, *at; const float *values; };
struct vector { int64_t size; float *values; };
struct multiplication { struct matrix matrix; struct vector x, y; };

int cusparseCreate(void **handle) { *handle = (void *)0x8000; return context_now() ? 0 : 1; }
int cusparseGetVersion(void *handle, int *version) { *version = 12508; return handle ? 0 : 3; }
int cusparseCreateCsr(struct matrix **matrix, int64_t rows, int64_t columns, int64_t elements, void *begins, void *at, void *values,
                      int kind_begins, int kind_at, int base, int kind)
{
    *matrix = malloc(sizeof **matrix);
    **matrix = (struct matrix){rows, columns, elements, begins, at, values};
    return kind_begins == 2 && kind_at == 2 && base == 0 && kind == 0 ? 0 : 3;
}
int cusparseCreateDnVec(struct vector **vector, int64_t size, void *values, int kind)
{
    *vector = malloc(sizeof **vector);
    **vector = (struct vector){size, values};
    return kind == 0 ? 0 : 3;
}
int cusparseSpMV_bufferSize(void *handle, int turn, const float *alpha, struct matrix *matrix, struct vector *x, const float *beta,
                            struct vector *y, int compute, int algorithm, size_t *bytes)
{
    *bytes = 8;
    if (!handle || turn || *alpha != 1 || *beta != 0 || compute != 0 || algorithm != 0)
        return 3;
    return x->size == matrix->columns && y->size == matrix->rows ? 0 : 3;
}
static void multiply(void *arguments)
{
    const struct multiplication *own = arguments;
    const struct matrix *matrix = &own->matrix;
    for (int64_t row = 0; row < matrix->rows; ++row) {
        float sum = 0;
        for (int at = matrix->begins[row]; at < matrix->begins[row + 1]; ++at)
            sum += matrix->values[at] * own->x.values[matrix->at[at]];
        own->y.values[row] = sum;
    }
    if (MUTATION("last-row-is-lost"))
        own->y.values[matrix->rows - 1] = 0.5f;
}
int cusparseSpMV(void *handle, int turn, const float *alpha, struct matrix *matrix, struct vector *x, const float *beta,
                 struct vector *y, int compute, int algorithm, void *workspace)
{
    size_t bytes;
    const int code = cusparseSpMV_bufferSize(handle, turn, alpha, matrix, x, beta, y, compute, algorithm, &bytes);
    const struct multiplication own = {*matrix, *x, *y};
    return code || !workspace ? code | 3 : enqueue(0, multiply, &own, sizeof own);
}

/* ---- cuRAND ---- */

struct generator { int kind; unsigned long long seed; };
struct numbers { struct generator generator; int is_uniform; uint32_t *to; size_t count; };

int curandGetVersion(int *version) { *version = 10309; return 0; }
int curandCreateGenerator(struct generator **generator, int kind)
{
    *generator = malloc(sizeof **generator);
    **generator = (struct generator){kind, 0};
    return !context_now() ? 203 : kind == 161 || kind == 201 ? 0 : 103;
}
int curandSetPseudoRandomGeneratorSeed(struct generator *generator, unsigned long long seed)
{
    generator->seed = seed;
    return generator->kind == 161 ? 0 : 103;
}
static void generate(void *arguments)
{
    const struct numbers *own = arguments;
    uint64_t state = own->generator.seed * 0x9e3779b97f4a7c15ull + 1;
    uint32_t point = 0;
    for (size_t at = 0; at < own->count; ++at) {
        uint32_t word = point;
        if (own->generator.kind == 161) {
            state = state * 6364136223846793005ull + 1442695040888963407ull;
            word = (uint32_t)(state >> 32);
        }
        /* Sobol's first dimension, in Gray's order: the lowest zero of the number of the point says what changes. */
        point ^= 0x80000000u >> (at + 1 < (1u << 31) ? __builtin_ctz(~(uint32_t)at) : 31);
        if (own->is_uniform) {
            const float value = ((float)(word >> 8) + 1) / 16777216.0f;
            memcpy(own->to + at, &value, 4);
        } else
            own->to[at] = word;
    }
    if (own->generator.kind == 201 && MUTATION("a-point-comes-twice"))
        own->to[own->count - 1] = own->to[0];
}
static int numbers(struct generator *generator, void *to, size_t count, int is_uniform)
{
    const struct numbers own = {*generator, is_uniform, to, count};
    return to && count ? enqueue(0, generate, &own, sizeof own) : 105;
}
int curandGenerate(struct generator *generator, void *to, size_t count) { return numbers(generator, to, count, 0); }
int curandGenerateUniform(struct generator *generator, void *to, size_t count) { return numbers(generator, to, count, 1); }
int curandDestroyGenerator(struct generator *generator) { free(generator); return 0; }
