// Runs the kernels of kernels/cuda on the processor and compares them with plain loops, bit for bit. A CUDA block is
// a group of threads with a barrier; blocks run one after the other. Warp shuffles go through a table and a barrier.
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

struct Three {
    unsigned x, y, z;
};
static thread_local Three threadIdx;
static Three blockIdx, blockDim, gridDim;
static std::barrier<> *all_threads;

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(n)
static void __syncthreads() { all_threads->arrive_and_wait(); }

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
static float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
static float __fdiv_rn(float a, float b) { return a / b; }
static float __fsqrt_rn(float a) { return std::sqrt(a); }
static float __fadd_rn(float a, float b) { return a + b; }
template <typename Number> static void atomicAdd(Number *to, Number value) { std::atomic_ref<Number>(*to).fetch_add(value); }
static void atomicOr(unsigned long long *to, unsigned long long value) { std::atomic_ref(*to).fetch_or(value); }
static void atomicMin(unsigned long long *to, unsigned long long value)
{
    std::atomic_ref own(*to);
    for (unsigned long long seen = own.load(); value < seen && !own.compare_exchange_weak(seen, value);) {
    }
}

#include "conv_direct.cu"
#undef TILE
#include "conv_implicit.cu"
#undef TILE
#include "gemm_f32.cu"
#undef TILE
#undef EACH
#include "elementwise.cu"
#include "memory_pattern.cu"
#include "reduce.cu"

static void launch(Three grid, Three block, const std::function<void()> &kernel)
{
    gridDim = grid;
    blockDim = block;
    const unsigned count = block.x * block.y * block.z;
    std::barrier<> barrier(count);
    all_threads = &barrier;
    std::vector<std::thread> threads;
    // Each thread goes through all blocks: a barrier between them keeps blockIdx one value for all.
    for (unsigned t = 0; t < count; ++t)
        threads.emplace_back([&, t] {
            threadIdx = {t % block.x, t / block.x % block.y, t / block.x / block.y};
            for (unsigned b = 0; b < grid.x * grid.y * grid.z; ++b) {
                __syncthreads();
                if (t == 0)
                    blockIdx = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
                __syncthreads();
                kernel();
            }
        });
    for (auto &thread : threads)
        thread.join();
}

static int failures;
static void check(const char *name, bool good)
{
    std::printf("%s %s\n", good ? "ok" : "WRONG", name);
    failures += !good;
}

static uint64_t state = 42;
static int small()
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (int)(state >> 40) % 17 - 8;
}
static std::vector<float> integers(size_t n)
{
    std::vector<float> all(n);
    for (auto &value : all)
        value = (float)small();
    return all;
}
static unsigned ceil(unsigned n, unsigned by) { return (n + by - 1) / by; }

static bool gemm(int m, int n, int k)
{
    const auto a = integers((size_t)m * k), b = integers((size_t)k * n);
    std::vector<float> c((size_t)m * n, -1.0f);
    launch({ceil(n, 64), ceil(m, 64), 1}, {16, 16, 1}, [&] { gemm_f32(a.data(), b.data(), c.data(), m, n, k); });
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            long sum = 0;
            for (int d = 0; d < k; ++d)
                sum += (long)a[(size_t)i * k + d] * (long)b[(size_t)d * n + j];
            if (c[(size_t)i * n + j] != (float)sum)
                return false;
        }
    return true;
}

struct Shape {
    int n, c, h, w, k, r, s, groups, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
};

// Scatters each input to the outputs it reaches: another loop than the kernels gather with.
static std::vector<float> reference(const Shape &o, const std::vector<float> &x, const std::vector<float> &w, int p, int q)
{
    std::vector<float> y((size_t)o.n * o.k * p * q, 0.0f);
    const int channels = o.c / o.groups, filters = o.k / o.groups;
    for (int image = 0; image < o.n; ++image)
        for (int c = 0; c < o.c; ++c)
            for (int i = 0; i < o.h; ++i)
                for (int j = 0; j < o.w; ++j)
                    for (int f = c / channels * filters; f < (c / channels + 1) * filters; ++f)
                        for (int a = 0; a < o.r; ++a)
                            for (int b = 0; b < o.s; ++b) {
                                const int up = i + o.pad_h - a * o.dilation_h, left = j + o.pad_w - b * o.dilation_w;
                                if (up < 0 || left < 0 || up % o.stride_h || left % o.stride_w)
                                    continue;
                                const int row = up / o.stride_h, column = left / o.stride_w;
                                if (row < p && column < q)
                                    y[(((size_t)image * o.k + f) * p + row) * q + column] +=
                                        x[(((size_t)image * o.c + c) * o.h + i) * o.w + j] *
                                        w[(((size_t)f * channels + c % channels) * o.r + a) * o.s + b];
                            }
    return y;
}

static void conv(bool *direct, bool *implicit)
{
    const Shape shapes[] = {
        {1, 3, 8, 8, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1}, {2, 4, 9, 7, 6, 3, 2, 2, 2, 1, 0, 1, 1, 2},
        {1, 6, 10, 11, 6, 3, 3, 6, 1, 2, 2, 1, 2, 1}, {3, 8, 5, 6, 40, 1, 1, 2, 1, 1, 0, 0, 1, 1},
        {1, 2, 12, 12, 2, 5, 4, 1, 3, 2, 4, 3, 2, 3},
    };
    *direct = *implicit = true;
    for (const auto &o : shapes) {
        const int p = (o.h + 2 * o.pad_h - o.dilation_h * (o.r - 1) - 1) / o.stride_h + 1;
        const int q = (o.w + 2 * o.pad_w - o.dilation_w * (o.s - 1) - 1) / o.stride_w + 1;
        const auto x = integers((size_t)o.n * o.c * o.h * o.w), w = integers((size_t)o.k * (o.c / o.groups) * o.r * o.s);
        const auto wanted = reference(o, x, w, p, q);
        std::vector<float> y(wanted.size(), -1.0f), z(wanted.size(), -1.0f);
        launch({ceil(y.size(), 256), 1, 1}, {256, 1, 1}, [&] {
            conv_direct(x.data(), w.data(), y.data(), o.n, o.c, o.h, o.w, o.k, o.r, o.s, o.groups, o.stride_h, o.stride_w,
                        o.pad_h, o.pad_w, o.dilation_h, o.dilation_w);
        });
        launch({ceil(o.n * p * q, 16), ceil(o.k / o.groups, 16), (unsigned)o.groups}, {16, 16, 1}, [&] {
            conv_implicit(x.data(), w.data(), z.data(), o.n, o.c, o.h, o.w, o.k, o.r, o.s, o.groups, o.stride_h,
                          o.stride_w, o.pad_h, o.pad_w, o.dilation_h, o.dilation_w);
        });
        *direct &= y == wanted;
        *implicit &= z == wanted;
    }
}

int main()
{
    check("gemm_f32", gemm(64, 64, 64) && gemm(1, 1, 1) && gemm(70, 33, 19) && gemm(65, 130, 40));
    bool direct, implicit;
    conv(&direct, &implicit);
    check("conv_direct", direct);
    check("conv_implicit", implicit);

    const unsigned long long n = 5000;
    const auto x = integers(n);
    auto y = integers(n), wanted = y;
    for (size_t i = 0; i < n; ++i)
        wanted[i] = std::fma(0.3f, x[i], y[i]);
    launch({3, 1, 1}, {256, 1, 1}, [&] { axpy_f32(0.3f, x.data(), y.data(), n); });
    check("axpy_f32", y == wanted);
    std::vector<float> positive(n), roots(n);
    for (size_t i = 0; i < n; ++i)
        positive[i] = (float)i * 0.7f;
    launch({3, 1, 1}, {256, 1, 1}, [&] { divide_sqrt_f32(positive.data(), roots.data(), n); });
    bool good = true;
    for (size_t i = 0; i < n; ++i)
        good &= roots[i] == std::sqrt(positive[i]) / (1.0f + positive[i]);
    check("divide_sqrt_f32", good);

    std::vector<unsigned> numbers(n);
    unsigned long long sum = 0, found_sum = 0;
    for (size_t i = 0; i < n; ++i)
        sum += numbers[i] = (unsigned)(i * 2654435761u);
    launch({3, 1, 1}, {256, 1, 1}, [&] { sum_u32(numbers.data(), &found_sum, n); });
    check("sum_u32", sum == found_sum);
    float exact = 0.0f, found_exact = 0.0f;
    for (const float value : x)
        exact += value;
    launch({3, 1, 1}, {256, 1, 1}, [&] { sum_f32(x.data(), &found_exact, n); });
    check("sum_f32", exact == found_exact);

    std::vector<unsigned long long> words(n), found = {0, ~0ull, 0};
    launch({3, 1, 1}, {256, 1, 1}, [&] { pattern_write(words.data(), n, 7); });
    launch({3, 1, 1}, {256, 1, 1}, [&] { pattern_verify(words.data(), n, 7, 0, found.data()); });
    good = found == std::vector<unsigned long long>{0, ~0ull, 0};
    launch({3, 1, 1}, {256, 1, 1}, [&] { pattern_invert(words.data(), n); });
    launch({3, 1, 1}, {256, 1, 1}, [&] { pattern_verify(words.data(), n, 7, ~0ull, found.data()); });
    check("pattern_write, pattern_invert", good && found == std::vector<unsigned long long>{0, ~0ull, 0});
    words[4000] ^= 5;
    words[123] ^= 1ull << 40;
    launch({3, 1, 1}, {256, 1, 1}, [&] { pattern_verify(words.data(), n, 7, ~0ull, found.data()); });
    check("pattern_verify", found == std::vector<unsigned long long>{2, 123, 5 | 1ull << 40});
    return failures != 0;
}
