# Warp (package warp-lang). Its library has NVRTC and the runtime inside, and tells its CUDA without a GPU.


def facts():
    import warp

    say("version", version("warp-lang"))
    attempt("cuda", lambda: minor(toolkit(warp)))


def toolkit(warp):
    warp.init()
    # The module of the runtime moved with 1.10, its functions were renamed with 1.9.
    inner = getattr(warp, "_src", warp).context.runtime.core
    ask = getattr(inner, "wp_cuda_toolkit_version", None) or inner.cuda_toolkit_version
    return ask()


def kernel():
    import warp as wp

    wp.init()
    need(wp.is_cuda_available(), "Warp sees no GPU")

    @wp.kernel
    def weighted(x: wp.array(dtype=wp.float32), y: wp.array(dtype=wp.float32), total: wp.array(dtype=wp.float32)):
        at = wp.tid()
        y[at] = 2.0 * x[at] + float(at)
        wp.atomic_add(total, 0, y[at])

    count = 1000
    values = [float(number * 7 % 13 - 6) for number in range(count)]
    x = wp.array(values, dtype=wp.float32, device="cuda:0")
    y = wp.zeros(count, dtype=wp.float32, device="cuda:0")
    total = wp.zeros(1, dtype=wp.float32, device="cuda:0")
    wp.launch(weighted, dim=count, inputs=[x, y, total], device="cuda:0")
    wp.synchronize()
    right = [2.0 * value + at for at, value in enumerate(values)]
    need(y.list() == right, "the kernel's result is wrong")
    need(total.list() == [sum(right)], "the atomic sum is wrong")
    return f"a kernel compiled for this GPU: {count} elements and an atomic sum, exact"
