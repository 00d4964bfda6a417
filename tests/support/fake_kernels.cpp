// The kernels of kernels/cuda on the processor, for the fake libcuda: one block after the other, each CUDA thread as a
// coroutine that changes at a barrier. The tensor-core kernels are PTX: here each warp makes its tile by plain loops.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <setjmp.h>
#include <string>
#include <ucontext.h>
#include <vector>

#include "fake_queue.h"

#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wunused-function"

struct Three {
    unsigned x, y, z;
};
static Three threadIdx, blockIdx, blockDim, gridDim;

// A CUDA thread. It is entered once by setcontext and changed by _longjmp, which makes no system call.
struct Fiber {
    jmp_buf at;
    std::vector<char> stack;
    bool started, ended;
};
static Fiber fibers[1024];
static jmp_buf scheduler;
static Fiber *running;

static void yield()
{
    if (!_setjmp(running->at))
        _longjmp(scheduler, 1);
}

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(n)
static void __syncthreads()
{
    if (!running)
        std::abort(); // A kernel of the table without barriers has one.
    yield();
}
// Every thread of the block takes part, as in sum_of_block.
template <typename Number> static Number __shfl_down_sync(unsigned, Number value, int distance)
{
    static Number table[1024];
    const unsigned at = threadIdx.x;
    table[at] = value;
    __syncthreads();
    const Number got = at % 32 + distance < 32 ? table[at + distance] : value;
    __syncthreads();
    return got;
}
static float __fmaf_rn(float a, float b, float c)
{
    static const bool twice = is_mutation("fma-rounds-twice");
    return twice ? a * b + c : std::fma(a, b, c);
}
static float __fdiv_rn(float a, float b) { return a / b; }
static float __fsqrt_rn(float a) { return std::sqrt(a); }
static float __fadd_rn(float a, float b) { return a + b; }
template <typename Number> static void atomicAdd(Number *to, Number value) { *to += value; }
static void atomicOr(unsigned long long *to, unsigned long long value) { *to |= value; }
static void atomicMin(unsigned long long *to, unsigned long long value) { *to = value < *to ? value : *to; }

#include "../../kernels/cuda/conv_direct.cu"
#undef TILE
#include "../../kernels/cuda/conv_implicit.cu"
#undef TILE
#include "../../kernels/cuda/gemm_f32.cu"
#undef TILE
#undef EACH
#include "../../kernels/cuda/elementwise.cu"
#undef EACH
#include "../../kernels/cuda/memory_pattern.cu"
#include "../../kernels/cuda/reduce.cu"
#undef TILE
#include "../../kernels/cuda/gemm_wmma.cu"

static float bits_to_float(uint32_t bits)
{
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}
static uint32_t float_to_bits(float value)
{
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    return bits;
}
static float from_half(unsigned short bits)
{
    // Made once: this is asked for every element of every tile.
    static const std::vector<float> all = [] {
        std::vector<float> values(1 << 16);
        for (int at = 0; at < 1 << 16; ++at) {
            const int exponent = at >> 10 & 31, fraction = at & 1023;
            const float value = exponent ? std::ldexp(1024.0f + fraction, exponent - 25) : std::ldexp((float)fraction, -24);
            values[at] = at & 0x8000 ? -value : value;
        }
        return values;
    }();
    return all[bits];
}
static float from_brain(unsigned short bits) { return bits_to_float((uint32_t)bits << 16); }
// 10 bits of fraction, ties away from zero.
static float to_tf32(float value)
{
    static const bool bf16 = is_mutation("own-tf32-is-bf16");
    const uint32_t kept = bf16 ? 16 : 13;
    return bits_to_float((float_to_bits(value) + (1u << (kept - 1))) & ~((1u << kept) - 1));
}
// 11 bits of precision, as fp16 has; its range is not passed here.
static float to_half(float value)
{
    int exponent;
    const float fraction = std::frexp(value, &exponent);
    return std::ldexp(std::nearbyint(std::ldexp(fraction, 11)), exponent - 11);
}

template <typename Element> static void wmma(const Element *a, const Element *b, float *c, int m, int n, int k, float (*value)(Element))
{
    int row, column;
    // The warp as a whole makes a tile.
    if (threadIdx.x % 32 || !own_tile(m, n, &row, &column))
        return;
    const bool halves = value == (float (*)(Element))(void *)from_half && is_mutation("own-fp16-sums-in-fp16");
    const bool swapped = value == (float (*)(Element))(void *)from_brain && is_mutation("own-bf16-swaps-a-tile");
    float tile[16][16] = {}, left[16];
    std::vector<float> right((size_t)k * 16);
    for (int l = 0; l < k; ++l)
        for (int j = 0; j < 16; ++j)
            right[(size_t)l * 16 + j] = value(b[(size_t)l * n + column + j]);
    for (int i = 0; i < 16; ++i)
        for (int start = 0; start < k; start += 16) {
            for (int l = 0; l < 16; ++l)
                left[l] = value(a[(size_t)(row + i) * k + start + l]);
            for (int l = 0; l < 16; ++l)
                for (int j = 0; j < 16; ++j)
                    tile[i][j] += left[l] * right[(size_t)(start + l) * 16 + j];
            for (int j = 0; j < 16 && halves; ++j)
                tile[i][j] = to_half(tile[i][j]);
        }
    const int to = swapped && column == 16 ? 0 : column;
    for (int i = 0; i < 16; ++i)
        std::memcpy(c + (size_t)(row + i) * n + to, tile[i], sizeof tile[i]);
}

template <typename T> static T at(void **parameters, int index) { return *(T *)parameters[index]; }

struct Kernel {
    const char *parameters;
    unsigned most;
    bool barriers;
    void (*run)(void **);
};

static void convolve(void **p, bool implicit)
{
    int sizes[14];
    for (int i = 0; i < 14; ++i)
        sizes[i] = at<int>(p, 3 + i);
    const auto *s = sizes;
    (implicit ? conv_implicit : conv_direct)(at<float *>(p, 0), at<float *>(p, 1), at<float *>(p, 2), s[0], s[1], s[2], s[3],
                                             s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11], s[12], s[13]);
}

static const std::map<std::string, Kernel> &kernels()
{
    using Word = unsigned long long;
    const unsigned any = 1024;
    static const std::map<std::string, Kernel> all = {
        {"gemm_f32", {"pppiii", any, true, [](void **p) {
             gemm_f32(at<float *>(p, 0), at<float *>(p, 1), at<float *>(p, 2), at<int>(p, 3), at<int>(p, 4), at<int>(p, 5));
         }}},
        {"gemm_wmma_f16", {"pppiii", any, false, [](void **p) {
             wmma<unsigned short>(at<unsigned short *>(p, 0), at<unsigned short *>(p, 1), at<float *>(p, 2), at<int>(p, 3), at<int>(p, 4), at<int>(p, 5), from_half);
         }}},
        {"gemm_wmma_bf16", {"pppiii", any, false, [](void **p) {
             wmma<unsigned short>(at<unsigned short *>(p, 0), at<unsigned short *>(p, 1), at<float *>(p, 2), at<int>(p, 3), at<int>(p, 4), at<int>(p, 5), from_brain);
         }}},
        {"gemm_wmma_tf32", {"pppiii", any, false, [](void **p) {
             wmma<float>(at<float *>(p, 0), at<float *>(p, 1), at<float *>(p, 2), at<int>(p, 3), at<int>(p, 4), at<int>(p, 5), to_tf32);
         }}},
        {"conv_direct", {"pppiiiiiiiiiiiiii", any, false, [](void **p) { convolve(p, false); }}},
        {"conv_implicit", {"pppiiiiiiiiiiiiii", any, true, [](void **p) { convolve(p, true); }}},
        {"axpy_f32", {"fppl", any, false, [](void **p) { axpy_f32(at<float>(p, 0), at<float *>(p, 1), at<float *>(p, 2), at<Word>(p, 3)); }}},
        {"divide_sqrt_f32", {"ppl", any, false, [](void **p) { divide_sqrt_f32(at<float *>(p, 0), at<float *>(p, 1), at<Word>(p, 2)); }}},
        {"sum_u32", {"ppl", 256, true, [](void **p) { sum_u32(at<unsigned *>(p, 0), at<Word *>(p, 1), at<Word>(p, 2)); }}},
        {"sum_f32", {"ppl", 256, true, [](void **p) { sum_f32(at<float *>(p, 0), at<float *>(p, 1), at<Word>(p, 2)); }}},
        {"pattern_write", {"pll", any, false, [](void **p) { pattern_write(at<Word *>(p, 0), at<Word>(p, 1), at<Word>(p, 2)); }}},
        {"pattern_invert", {"pl", any, false, [](void **p) { pattern_invert(at<Word *>(p, 0), at<Word>(p, 1)); }}},
        {"pattern_verify", {"plllp", any, false, [](void **p) {
             pattern_verify(at<Word *>(p, 0), at<Word>(p, 1), at<Word>(p, 2), at<Word>(p, 3), at<Word *>(p, 4));
         }}},
    };
    return all;
}

const char *fake_parameters(const char *name)
{
    const auto found = kernels().find(name);
    return found == kernels().end() ? nullptr : found->second.parameters;
}
unsigned fake_most_threads(const char *name) { return kernels().at(name).most; }

static const Kernel *launched;
static void **arguments;
// A thread of every block, one after the other.
static void start()
{
    for (;;) {
        launched->run(arguments);
        running->ended = true;
        yield();
    }
}

static void resume(Fiber &fiber)
{
    running = &fiber;
    if (_setjmp(scheduler)) {
        running = nullptr;
        return;
    }
    if (fiber.started)
        _longjmp(fiber.at, 1);
    static ucontext_t context;
    fiber.started = true;
    fiber.stack.resize(32 << 10);
    getcontext(&context);
    context.uc_stack.ss_sp = fiber.stack.data();
    context.uc_stack.ss_size = fiber.stack.size();
    makecontext(&context, start, 0);
    setcontext(&context);
}

static Three thread(unsigned t) { return {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y}; }

// A block with barriers: every thread runs to its next barrier, in turn, until all have ended.
static void run_block(unsigned count)
{
    for (unsigned t = 0; t < count; ++t)
        fibers[t].ended = false;
    for (bool left = true; left;) {
        left = false;
        for (unsigned t = 0; t < count; ++t) {
            if (fibers[t].ended)
                continue;
            threadIdx = thread(t);
            resume(fibers[t]);
            left |= !fibers[t].ended;
        }
    }
}

static void wrong(const char *name, void **p)
{
    const bool dilated = !std::strcmp(name, "conv_implicit") && at<int>(p, 15) * at<int>(p, 16) > 1;
    if (dilated && is_mutation("own-conv-dilated-is-wrong"))
        at<float *>(p, 2)[1] += 1;
    if (!std::getenv("FAKE_WRONG"))
        return;
    const auto size = [&](int index) { return (size_t)at<int>(p, index); };
    if (!std::strncmp(name, "gemm_", 5))
        at<float *>(p, 2)[size(3) * size(4) - 2] += 1;
    else if (!std::strncmp(name, "conv_", 5))
        at<float *>(p, 2)[1] += 1;
    else if (!std::strcmp(name, "pattern_write"))
        at<unsigned long long *>(p, 0)[at<unsigned long long>(p, 1) / 2] ^= 64;
}

void fake_kernel(const char *name, const unsigned *grid, const unsigned *block, void **parameters)
{
    const Kernel &kernel = kernels().at(name);
    launched = &kernel;
    arguments = parameters;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    const unsigned count = block[0] * block[1] * block[2];
    for (unsigned z = 0; z < grid[2]; ++z)
        for (unsigned y = 0; y < grid[1]; ++y)
            for (unsigned x = 0; x < grid[0]; ++x) {
                blockIdx = {x, y, z};
                if (kernel.barriers) {
                    run_block(count);
                    continue;
                }
                for (unsigned t = 0; t < count; ++t) {
                    threadIdx = thread(t);
                    kernel.run(parameters);
                }
            }
    if (!std::strcmp(name, "gemm_f32") && is_mutation("own-fp32-skips-a-step")) {
        const int m = at<int>(parameters, 3), n = at<int>(parameters, 4), k = at<int>(parameters, 5);
        const float *a = at<float *>(parameters, 0), *b = at<float *>(parameters, 1);
        for (int i = 0; i < m; ++i)
            for (int j = 0; j < n; ++j)
                at<float *>(parameters, 2)[(size_t)i * n + j] -= a[(size_t)i * k + k - 1] * b[(size_t)(k - 1) * n + j];
    }
    wrong(name, parameters);
}
