//! Every kernel of `kernels/ptx` executed, instruction by instruction, and compared with plain loops, bit for bit. It is the
//! code that a driver compiles in an image without NVRTC; that of the tensor cores runs nowhere else without a GPU.
#![expect(
    clippy::many_single_char_names,
    clippy::cast_possible_truncation,
    clippy::float_cmp,
    reason = "sizes have the letters of the kernels' heads, and results are exact"
)]

use crate::kernels::{KERNELS, Kernel, kernel};
use crate::ptx_machine::{Launch, Memory, Program, run};

/// Every PTX that has the entry.
fn programs(source: &str, entry: &str) -> Vec<Program> {
    let has = |text: &str| text.contains(&format!(".entry {entry}("));
    let kernel: &Kernel = kernel(source).expect("a kernel");
    let texts: Vec<_> = kernel.ptx.iter().map(|ptx| ptx.text).filter(|text| has(text)).collect();
    assert!(!texts.is_empty(), "{entry}");
    texts.into_iter().map(|text| Program::parse(text).expect("it is read")).collect()
}

/// Whole numbers from -8 to 8, the same each time.
struct Numbers(u64);

impl Numbers {
    fn small(&mut self) -> i32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i32::try_from((self.0 >> 40) % 17).expect("below 17") - 8
    }

    #[expect(clippy::cast_precision_loss, reason = "small")]
    fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.small() as f32).collect()
    }
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().expect("four"))).collect()
}

/// Bits of fp16 or bf16 of whole numbers below 2048 or 256.
fn halves(kind: &str, values: &[f32]) -> Vec<u8> {
    let bits = |value: f32| {
        let wide = value.to_bits();
        if kind == "bf16" || value == 0.0 {
            return (wide >> 16) as u16;
        }
        let exponent = (wide >> 23 & 255) - 127 + 15;
        (wide >> 16 & 0x8000) as u16 | ((exponent << 10) | (wide >> 13 & 1023)) as u16
    };
    values.iter().flat_map(|value| bits(*value).to_le_bytes()).collect()
}

fn product(a: &[f32], b: &[f32], [m, n, k]: [usize; 3]) -> Vec<f32> {
    let element = |at: usize| (0..k).map(|l| a[at / n * k + l] * b[l * n + at % n]).sum();
    (0..m * n).map(element).collect()
}

fn int(size: usize) -> u64 {
    u64::try_from(size).expect("small")
}

/// What a kernel for products writes; `stored` gives the bytes of its inputs.
fn multiplied(
    program: &Program,
    entry: &str,
    inputs: [Vec<u8>; 2],
    [m, n, k]: [usize; 3],
) -> Result<Vec<f32>, String> {
    let (tile, block) = if entry == "gemm_f32" { (64, [16, 16, 1]) } else { (32, [128, 1, 1]) };
    let mut memory = Memory::default();
    let [a, b] = inputs.map(|bytes| memory.holding(bytes));
    let c = memory.holding(vec![0xff; 4 * m * n]);
    let grid = [n, m].map(|size| u32::try_from(size.div_ceil(tile)).expect("small"));
    let launch = Launch { grid: [grid[0], grid[1], 1], block, arguments: &[a, b, c, int(m), int(n), int(k)] };
    run(program.entry(entry)?, &mut memory, &launch)?;
    Ok(floats(memory.buffer(c)))
}

#[test]
fn products_are_exact_for_whole_numbers() {
    let cases = [
        ("gemm_f32", "gemm_f32", vec![[64, 64, 16], [70, 33, 19], [1, 1, 1]]),
        ("gemm_wmma", "gemm_wmma_f16", vec![[32, 32, 32], [48, 16, 64]]),
        ("gemm_wmma", "gemm_wmma_bf16", vec![[32, 32, 32], [16, 48, 64]]),
        ("gemm_wmma", "gemm_wmma_tf32", vec![[32, 32, 32], [48, 48, 16]]),
    ];
    let mut numbers = Numbers(42);
    for (source, entry, shapes) in cases {
        for program in programs(source, entry) {
            for shape @ [m, n, k] in &shapes {
                let (a, b) = (numbers.floats(m * k), numbers.floats(k * n));
                let stored = |values: &[f32]| match entry {
                    "gemm_wmma_f16" => halves("f16", values),
                    "gemm_wmma_bf16" => halves("bf16", values),
                    _ => bytes(values),
                };
                let found = multiplied(&program, entry, [stored(&a), stored(&b)], *shape);
                assert_eq!(found.as_deref(), Ok(product(&a, &b, *shape).as_slice()), "{entry} {shape:?}");
            }
        }
    }
}

/// The hardware would cut the low bits: the kernel rounds first, ties away from zero.
#[test]
fn tf32_kernel_rounds_its_inputs() {
    let shape @ [m, n, k] = [32, 32, 16];
    let (half, third) = (1.0 + 2f32.powi(-11), 1.0 + 2f32.powi(-12));
    for (value, rounded) in [(half, 1.0 + 2f32.powi(-10)), (-half, -1.0 - 2f32.powi(-10)), (third, 1.0)] {
        let inputs = [bytes(&vec![value; m * k]), bytes(&vec![1.0; k * n])];
        for program in programs("gemm_wmma", "gemm_wmma_tf32") {
            let found = multiplied(&program, "gemm_wmma_tf32", inputs.clone(), shape).expect("it runs");
            assert!(found.iter().all(|sum| *sum == 16.0 * rounded), "{value}: {}", found[0]);
        }
    }
}

/// n, c, h, width, k, r, s, groups, stride, pad and dilation, the last three by row and column.
type Shape = [usize; 14];

/// The definition, as a sum for each output.
fn convolved(shape: Shape, x: &[f32], w: &[f32]) -> Vec<f32> {
    let [n, c, h, width, k, r, s, groups, sh, sw, ph, pw, dh, dw] = shape;
    let (p, q) = ((h + 2 * ph - dh * (r - 1) - 1) / sh + 1, (width + 2 * pw - dw * (s - 1) - 1) / sw + 1);
    let channels = c / groups;
    let output = |at: usize| {
        let (column, row, filter, image) = (at % q, at / q % p, at / q / p % k, at / q / p / k);
        let taps = (0..channels * r * s).map(|tap| (tap / s / r, tap / s % r, tap % s));
        taps.map(|(channel, i, j)| {
            let (y, x_) = (row * sh + i * dh, column * sw + j * dw);
            if y < ph || x_ < pw || y - ph >= h || x_ - pw >= width {
                return 0.0;
            }
            let from = filter / (k / groups) * channels + channel;
            x[((image * c + from) * h + y - ph) * width + x_ - pw]
                * w[((filter * channels + channel) * r + i) * s + j]
        })
        .sum()
    };
    (0..n * k * p * q).map(output).collect()
}

#[test]
fn convolutions_are_exact_for_whole_numbers() {
    let shapes: [Shape; 4] = [
        [1, 3, 6, 6, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1],
        [2, 4, 7, 6, 6, 3, 2, 2, 2, 1, 0, 1, 1, 2],
        [1, 6, 8, 7, 6, 3, 3, 6, 1, 2, 2, 1, 2, 1],
        [1, 8, 5, 6, 20, 1, 1, 1, 1, 1, 0, 0, 1, 1],
    ];
    let mut numbers = Numbers(7);
    for shape in shapes {
        let [n, c, h, width, k, r, s, groups, ..] = shape;
        let (x, w) = (numbers.floats(n * c * h * width), numbers.floats(k * (c / groups) * r * s));
        let wanted = convolved(shape, &x, &w);
        let outputs = wanted.len() / k;
        let small = |size: usize| u32::try_from(size).expect("small");
        for (entry, grid, block) in [
            ("conv_direct", [small(wanted.len().div_ceil(256)), 1, 1], [256, 1, 1]),
            (
                "conv_implicit",
                [small(outputs.div_ceil(16)), small((k / groups).div_ceil(16)), small(groups)],
                [16, 16, 1],
            ),
        ] {
            for program in programs(entry, entry) {
                let mut memory = Memory::default();
                let (x, w) = (memory.holding(bytes(&x)), memory.holding(bytes(&w)));
                let y = memory.holding(vec![0xff; 4 * wanted.len()]);
                let arguments: Vec<_> = [x, w, y].into_iter().chain(shape.map(int)).collect();
                let launch = Launch { grid, block, arguments: &arguments };
                let result = run(program.entry(entry).expect("there"), &mut memory, &launch);
                assert_eq!(result, Ok(()), "{entry} {shape:?}");
                assert_eq!(floats(memory.buffer(y)), wanted, "{entry} {shape:?}");
            }
        }
    }
}

#[test]
fn elementwise_kernels_round_once() {
    #[expect(clippy::cast_precision_loss, reason = "small")]
    let x: Vec<f32> = (0..1000).map(|at| at as f32 * 0.7).collect();
    let y = Numbers(3).floats(1000);
    for program in programs("elementwise", "axpy_f32") {
        let mut memory = Memory::default();
        let (a, b) = (memory.holding(bytes(&x)), memory.holding(bytes(&y)));
        let arguments = [u64::from(0.3f32.to_bits()), a, b, 1000];
        let launch = Launch { grid: [2, 1, 1], block: [256, 1, 1], arguments: &arguments };
        run(program.entry("axpy_f32").expect("there"), &mut memory, &launch).expect("it runs");
        let wanted: Vec<_> = x.iter().zip(&y).map(|(x, y)| 0.3f32.mul_add(*x, *y)).collect();
        assert_eq!(floats(memory.buffer(b)), wanted);

        let launch = Launch { arguments: &[a, b, 1000], ..launch };
        run(program.entry("divide_sqrt_f32").expect("there"), &mut memory, &launch).expect("it runs");
        let wanted: Vec<_> = x.iter().map(|x| x.sqrt() / (1.0 + x)).collect();
        assert_eq!(floats(memory.buffer(b)), wanted);
    }
}

#[test]
fn sums_over_warps_and_blocks_are_exact() {
    let x = Numbers(5).floats(1500);
    let words: Vec<u32> = (0..1500u32).map(|at| at.wrapping_mul(2_654_435_761)).collect();
    for program in programs("reduce", "sum_u32") {
        let mut memory = Memory::default();
        let from = memory.holding(words.iter().flat_map(|word| word.to_le_bytes()).collect());
        let (floating, sum, total) =
            (memory.holding(bytes(&x)), memory.holding(vec![0; 8]), memory.holding(vec![0; 4]));
        let launch = Launch { grid: [3, 1, 1], block: [256, 1, 1], arguments: &[from, sum, 1500] };
        run(program.entry("sum_u32").expect("there"), &mut memory, &launch).expect("it runs");
        let wanted: u64 = words.iter().map(|word| u64::from(*word)).sum();
        assert_eq!(memory.buffer(sum), wanted.to_le_bytes());
        let launch = Launch { arguments: &[floating, total, 1500], ..launch };
        run(program.entry("sum_f32").expect("there"), &mut memory, &launch).expect("it runs");
        assert_eq!(floats(memory.buffer(total)), [x.iter().sum::<f32>()]);
        let wide = Launch { block: [512, 1, 1], ..launch };
        assert!(
            run(program.entry("sum_f32").expect("there"), &mut memory, &wide).is_err(),
            "the bound of launches"
        );
    }
}

#[test]
fn pattern_is_written_inverted_and_every_wrong_word_counted() {
    let mix = |value: u64| {
        let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    };
    for program in programs("memory_pattern", "pattern_write") {
        let mut memory = Memory::default();
        let words = memory.holding(vec![0x5a; 8 * 900]);
        let go = |memory: &mut Memory, entry: &str, arguments: &[u64]| {
            let launch = Launch { grid: [2, 1, 1], block: [256, 1, 1], arguments };
            run(program.entry(entry).expect("there"), memory, &launch).expect("it runs");
        };
        let counted = |memory: &mut Memory, flip: u64| {
            let found = memory.holding([[0; 8], [0xff; 8], [0; 8]].concat());
            go(memory, "pattern_verify", &[words, 900, 7, flip, found]);
            let three = memory.buffer(found).chunks_exact(8);
            three.map(|eight| u64::from_le_bytes(eight.try_into().expect("eight"))).collect::<Vec<_>>()
        };
        assert_eq!(counted(&mut memory, 0)[0], 900, "nothing is written yet");
        let launch = Launch { grid: [2, 1, 1], block: [256, 1, 1], arguments: &[words, 900, 7] };
        run(program.entry("pattern_write").expect("there"), &mut memory, &launch).expect("it runs");
        let wanted: Vec<_> = (0..900).flat_map(|at| mix(7 + at).to_le_bytes()).collect();
        assert_eq!(memory.buffer(words), wanted);
        assert_eq!(counted(&mut memory, 0), [0, u64::MAX, 0]);
        let launch = Launch { arguments: &[words, 900], ..launch };
        run(program.entry("pattern_invert").expect("there"), &mut memory, &launch).expect("it runs");
        assert_eq!(counted(&mut memory, u64::MAX), [0, u64::MAX, 0]);
        assert_eq!(counted(&mut memory, u64::MAX ^ 5), [900, 0, 5]);
    }
}

/// Each file, and each entry of it, is run by a test of this file.
#[test]
fn every_entry_is_executed() {
    let own = include_str!("ptx_execution.rs");
    for kernel in KERNELS {
        for entry in kernel.entries {
            assert!(own.contains(&format!("\"{}\"", entry.name)), "{}", entry.name);
        }
    }
}

/// The interpreter must be able to say no.
#[test]
fn changed_code_gives_wrong_answers_or_faults() {
    let text = kernel("gemm_wmma").expect("a kernel").ptx[1].text;
    let shape @ [m, n, k] = [64, 32, 32];
    let mut numbers = Numbers(9);
    let (a, b) = (numbers.floats(m * k), numbers.floats(k * n));
    let found = |text: &str| {
        let program = Program::parse(text)?;
        multiplied(&program, "gemm_wmma_f16", [halves("f16", &a), halves("f16", &b)], shape)
    };
    let wanted = product(&a, &b, shape);
    assert_eq!(found(text).as_deref(), Ok(wanted.as_slice()));
    for (from, to, fault) in [
        ("%rd6, %rd2, 5;", "%rd6, %rd2, 4;", ""),
        ("add.s64 \t%rd25, %rd25, 32;", "add.s64 \t%rd25, %rd25, 64;", "is in no buffer"),
        ("add.s64 \t%rd25, %rd25, 32;", "add.s64 \t%rd25, %rd25, 16;", "not aligned"),
        ("shl.b32 \t%r10, %r9, 5;", "shl.b32 \t%r10, %r9, 4;", ""),
        ("and.b32  \t%r16, %r15, 16;", "and.b32  \t%r16, %r15, 17;", "different addresses"),
        ("mov.f32 \t%f80, %f73;", "", "read before it is written"),
        ("add.s64 \t%rd24", "popc.s64 \t%rd24", "unknown instruction"),
        ("add.s32 \t%r53, %r53, 16;", "add.s32 \t%r53, %r53, 0;", ""),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        match found(&changed) {
            Ok(sums) => assert!(sums != wanted && fault.is_empty(), "{to}"),
            Err(error) => assert!(error.contains(fault), "{to}: {error}"),
        }
    }
}
