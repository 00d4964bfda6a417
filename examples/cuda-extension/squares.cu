// The kernel: one thread for each element.
#include <ATen/cuda/CUDAContext.h>
#include <torch/types.h>

__global__ void squares_kernel(const float *from, float *to, int64_t count) {
    int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) to[i] = from[i] * from[i];
}

torch::Tensor squares_cuda(torch::Tensor input) {
    auto output = torch::empty_like(input);
    int64_t count = input.numel();
    if (count) {
        squares_kernel<<<(count + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
            input.data_ptr<float>(), output.data_ptr<float>(), count);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return output;
}
