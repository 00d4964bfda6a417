//! A second opinion: checks an accepted stack against the tables by plain loops, sharing no code with the rules.

use crate::matrix::Matrix;
use crate::matrix::tables::{Base, Channel, DriverBranch, JitCompiler, Status, ToolkitBound, Variant};
use crate::spec::{Flavour, Spec};
use crate::stack::Stack;
use crate::target::Target;
use crate::versions::{ComputeCapability, CudaApiVersion, DriverVersion, LibraryVersion, ToolkitVersion};

fn cubin(code: &[ComputeCapability], gpu: ComputeCapability) -> bool {
    const TEGRA: [&str; 6] = ["3.2", "5.3", "6.2", "7.2", "8.7", "10.1"];
    let tegra = |one: ComputeCapability| TEGRA.contains(&one.dotted().as_str());
    code.iter().any(|one| {
        let thor = |it: ComputeCapability| it.dotted() == "10.1" || it.dotted() == "11.0";
        let above = one.major == gpu.major && one.minor <= gpu.minor;
        *one == gpu || (thor(*one) && thor(gpu)) || (above && !tegra(*one) && !tegra(gpu))
    })
}

/// Whether some base of the matrix has a Python of the row and can load it.
pub(super) fn has_base(row: &Variant, matrix: &Matrix) -> bool {
    matrix.bases.iter().any(|base| {
        let loads = row.python.contains(&base.python) && base.glibc >= row.min_glibc;
        loads && (row.channel != Channel::Source || compiles(row, base, matrix))
    })
}

/// Whether a row may be chosen although its CUDA is not named.
pub(super) fn may_be_chosen(row: &Variant) -> bool {
    row.verified && row.arch.is_some() && !(row.status == Status::Unlisted && row.channel != Channel::Default)
}

/// Whether the base's own packages or the vendor have that nvcc, and the base a gcc it supports.
fn compiles(row: &Variant, base: &Base, matrix: &Matrix) -> bool {
    let minor = row.toolkit.parts()[..2].to_vec();
    let own =
        matrix.nvcc_packages.iter().any(|nvcc| nvcc.base == base.name && nvcc.cuda.parts()[..2] == minor);
    let vendor = matrix.nvcc_repositories.iter().any(|repository| {
        repository.base == base.name && repository.cuda.iter().any(|cuda| cuda.parts()[..2] == minor)
    });
    let gcc = |limit: u32| base.gcc.iter().any(|gcc| *gcc <= limit);
    let accepted = matrix.compilers.iter().any(|one| one.cuda.parts()[..2] == minor && gcc(one.gcc_max));
    (own || vendor) && accepted
}

/// Returns everything that keeps a row from running on a target, without forward compatibility.
pub(super) fn runs(row: &Variant, target: &Target, matrix: &Matrix) -> Vec<String> {
    let mut wrong = Vec::new();
    let (toolkit, cudnn, ptx_cuda) = (&row.toolkit, row.cudnn.as_ref(), row.ptx_cuda.as_ref());
    let choice = MachineChoice { toolkit, ptx_cuda, cudnn, target, lifted: false };
    let mut must = |holds: bool, what: &str| {
        if !holds {
            wrong.push(what.to_owned());
        }
    };
    machine(&choice, matrix, row.arch.as_deref(), &row.ptx, &mut must);
    torch(row, target, matrix, false, &mut must);
    if row.triton_before.is_none() {
        jit(row, row.triton.as_ref(), target, matrix, &mut must);
    }
    wrong
}

/// Checks the code of the PyTorch that a row is built on, where it is one build or one for its CUDA.
fn torch(row: &Variant, target: &Target, matrix: &Matrix, lifted: bool, must: &mut impl FnMut(bool, &str)) {
    let Some(wanted) = row.companions.get("torch") else { return };
    let mut of_major = Vec::new();
    for other in &matrix.variants {
        let named = other.framework == "pytorch" && other.version.to_string() == *wanted;
        if named && other.machine == row.machine && other.cuda.major == row.cuda.major {
            of_major.push(other);
        }
    }
    let of_cuda = of_major.iter().find(|other| other.cuda == row.cuda);
    let Some(below) = of_cuda.or(of_major.first().filter(|_| of_major.len() == 1)) else { return };
    let choice = MachineChoice {
        toolkit: &below.toolkit,
        ptx_cuda: below.ptx_cuda.as_ref(),
        cudnn: None,
        target,
        lifted,
    };
    let mut only_code = |holds: bool, what: &str| {
        if what == "no code for the GPU" {
            must(holds, "no code for the GPU in its PyTorch");
        }
    };
    machine(&choice, matrix, below.arch.as_deref(), &below.ptx, &mut only_code);
}

/// Checks the compilers that a row calls at run time.
fn jit(
    row: &Variant,
    triton: Option<&String>,
    target: &Target,
    matrix: &Matrix,
    must: &mut impl FnMut(bool, &str),
) {
    for one in &matrix.jit {
        let named = one.framework.as_ref().is_none_or(|name| *name == row.framework);
        let carried = one.triton.as_ref().is_none_or(|version| triton == Some(version));
        let from = one.first.as_ref().is_none_or(|first| row.version >= *first);
        let to = one.last.as_ref().is_none_or(|last| row.version <= *last);
        if !(named && carried && from && to) || one.cuda_major.is_some_and(|major| major != row.cuda.major) {
            continue;
        }
        let lacks = |gpu: ComputeCapability| {
            one.newest.is_some_and(|newest| newest < gpu) || one.missing.contains(&gpu)
        };
        let mut lacking = Vec::new();
        for gpu in target.gpus.iter().map(|gpu| gpu.compute_capability) {
            if lacks(gpu) {
                lacking.push(gpu);
            }
        }
        must(
            lacking.is_empty() || replaced(one, row, &lacking, matrix),
            "the run-time compiler lacks the GPU",
        );
        for gpu in target.gpus.iter().map(|gpu| gpu.compute_capability) {
            for compiler in &matrix.compilers {
                if compiler.cuda.parts()[..2] == row.toolkit.parts()[..2] {
                    let holds = match one.toolkit {
                        None => true,
                        Some(ToolkitBound::Targets) => compiler.targets.contains(&gpu),
                        Some(ToolkitBound::Oldest) => compiler.targets.iter().any(|target| *target <= gpu),
                    };
                    must(holds, "the toolkit's compiler lacks the GPU");
                }
            }
        }
    }
}

/// Whether some nvcc wheel of the row's CUDA major, from its toolkit on, has a ptxas with these GPUs that the Triton takes. In an
/// image without nvcc every such wheel can be added.
fn replaced(one: &JitCompiler, row: &Variant, gpus: &[ComputeCapability], matrix: &Matrix) -> bool {
    let Some(other) = &one.other_ptxas else { return false };
    let own = row.toolkit.parts();
    for components in &matrix.components {
        let release = components.cuda.parts();
        if release[0] != own[0] || release[1] < own[1] || release[0] > other.newest_cuda_major {
            continue;
        }
        for compiler in matrix.compilers.iter().filter(|one| one.cuda.parts()[..2] == release[..2]) {
            let both = |gpu: &ComputeCapability| compiler.targets.contains(gpu) && other.gpus.contains(gpu);
            if gpus.iter().all(both) {
                return true;
            }
        }
    }
    false
}

/// Whether a GPU is newer than the newest architecture of a branch, the last name in its list.
fn newer_than_the_branch(matrix: &Matrix, driver: &DriverVersion, gpu: ComputeCapability) -> bool {
    let oldest_of =
        |name: &str| matrix.capabilities.iter().filter(|row| row.arch == name).map(|row| row.cc).min();
    let Some(row) = matrix.capabilities.iter().find(|row| row.cc == gpu) else { return false };
    let mut branch = None;
    for one in &matrix.branches {
        if one.branch <= driver.major() && branch.is_none_or(|(number, _)| number < one.branch) {
            branch = Some((one.branch, one));
        }
    }
    let Some((_, branch)) = branch else { return false };
    let list = branch.architectures.split('(').next().unwrap_or_default();
    let last = list.split(['-', '\u{2013}']).next_back().unwrap_or_default().trim();
    if row.arch.starts_with(last) {
        return false;
    }
    oldest_of(last).zip(oldest_of(&row.arch)).is_some_and(|(last, own)| own > last)
}

/// Returns everything that is wrong with the stack.
pub(super) fn objections(spec: &Spec, stack: &Stack, matrix: &Matrix) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut must = |holds: bool, what: &str| {
        if !holds {
            wrong.push(format!("{}: {what}", stack.name));
        }
    };
    let mut rows = Vec::new();
    for row in matrix.variants.iter().chain(&matrix.source_variants) {
        if row.framework == stack.framework
            && row.version == stack.version
            && row.cuda == stack.cuda
            && row.machine == stack.target.machine
        {
            rows.push(row);
        }
    }
    must(rows.len() == 1, "exactly one row must be published");
    let Some(row) = rows.first() else { return wrong };
    must(stack.cudnn == row.cudnn && stack.nccl == row.nccl, "libraries are the row's");
    must(stack.toolkit == row.toolkit && stack.channel == row.channel, "toolkit and channel are the row's");
    must(row.python.contains(&stack.python), "the framework has a wheel for the Python");
    for (package, version) in &stack.companions {
        must(row.companions.get(package) == Some(version), "companions are the row's");
        for companion in &matrix.companions {
            if companion.package == *package && companion.version == *version && !companion.python.is_empty()
            {
                must(companion.python.contains(&stack.python), "a companion has no wheel for the Python");
            }
        }
    }
    honours(spec, stack, &mut must);
    must(
        stack.source_build.is_some() == (row.channel == Channel::Source),
        "the source build of an unpublished variant",
    );
    if let Some(build) = &stack.source_build {
        must(
            spec.cuda.is_some_and(|cuda| cuda.minor.is_some()),
            "built from source, yet its CUDA is not named",
        );
        let published = |one: &Variant| one.version == row.version && one.cuda == row.cuda;
        must(!matrix.variants.iter().any(published), "built from source, yet published");
        for gpu in stack.target.gpus.iter().map(|gpu| gpu.compute_capability) {
            must(cubin(&build.arch, gpu), "it is compiled for every GPU of the target");
        }
        must(build.arch == stack.requires.gpu, "what it is compiled for is what it needs");
        let floor = |line: &str| matrix.source_floors.iter().find(|floor| floor.line.to_string() == line);
        let line = format!("{}.{}", row.version.major(), row.version.minor());
        let reaches = floor(&line).is_some_and(|floor| floor.cuda <= row.toolkit);
        must(reaches, "the build accepts that CUDA");
    }
    // A wheel of a whole major is named by the major alone.
    if spec.cuda.is_none_or(|cuda| cuda.minor.is_none() && row.cuda.minor.is_some()) {
        must(may_be_chosen(row), "not verified or not listed, yet chosen unnamed");
    }
    must(row.arch.is_some() || (spec.version.is_some() && spec.cuda.is_some()), "not read, yet not named");
    let base = matrix.bases.iter().find(|base| base.name == stack.base);
    must(base.is_some_and(|base| base.python == stack.python), "the base has the Python");
    must(base.is_some_and(|base| base.glibc >= row.min_glibc), "the base's glibc is new enough");
    must(stack.nvcc.is_some() == (stack.flavour == Flavour::Devel), "devel and only devel has nvcc");
    if stack.flavour == Flavour::Devel {
        must(
            base.is_some_and(|base| base.gcc.contains(&stack.nvcc.as_ref().map_or(0, |nvcc| nvcc.gcc))),
            "the base has that gcc",
        );
        for compiler in &matrix.compilers {
            if compiler.cuda.parts()[..2] == row.toolkit.parts()[..2] {
                let gcc = base.is_some_and(|base| base.gcc.iter().any(|gcc| *gcc <= compiler.gcc_max));
                let clang =
                    base.is_some_and(|base| base.clang.iter().any(|clang| *clang <= compiler.clang_max));
                must(gcc || clang, "nvcc accepts no compiler of the base");
            }
        }
    }
    let choice = MachineChoice {
        toolkit: &stack.toolkit,
        ptx_cuda: row.ptx_cuda.as_ref(),
        cudnn: stack.cudnn.as_ref(),
        target: &stack.target,
        lifted: stack.forward_compat.is_some(),
    };
    machine(&choice, matrix, row.arch.as_deref(), &row.ptx, &mut must);
    torch(row, &stack.target, matrix, stack.forward_compat.is_some(), &mut must);
    jit(row, stack.triton.as_ref(), &stack.target, matrix, &mut must);
    wrong
}

fn honours(spec: &Spec, stack: &Stack, must: &mut impl FnMut(bool, &str)) {
    let version = format!("{}.", stack.version);
    must(
        spec.version.as_ref().is_none_or(|asked| version.starts_with(&format!("{asked}."))),
        "the requested version",
    );
    if let Some(cuda) = spec.cuda {
        must(cuda.major == stack.cuda.major, "the requested CUDA major");
        let major_only = stack.cuda.minor.is_none();
        must(
            cuda.minor.is_none() || major_only || cuda.minor == stack.cuda.minor,
            "the requested CUDA minor",
        );
        let patch = cuda.patch.is_none() || cuda.dotted() == stack.toolkit.to_string();
        must(patch || major_only, "the requested toolkit");
    }
    must(spec.python.is_none_or(|python| python == stack.python), "the requested Python");
    must(spec.flavour == stack.flavour, "the requested flavour");
    let again: Result<Spec, _> = stack.name.parse();
    must(again.is_ok_and(|again| again.to_string() == stack.name), "the canonical name is a spec");
}

/// The parts of a choice that the machine decides on.
struct MachineChoice<'a> {
    toolkit: &'a ToolkitVersion,
    /// The CUDA of the binary's PTX, if it is another than the toolkit's.
    ptx_cuda: Option<&'a CudaApiVersion>,
    cudnn: Option<&'a LibraryVersion>,
    target: &'a Target,
    /// Whether a forward-compatibility package is in use.
    lifted: bool,
}

fn machine(
    choice: &MachineChoice<'_>,
    matrix: &Matrix,
    arch: Option<&[ComputeCapability]>,
    ptx: &[ComputeCapability],
    must: &mut impl FnMut(bool, &str),
) {
    let driver = choice.target.driver.as_ref();
    let lifted = choice.lifted;
    let (major, minor) = (choice.toolkit.parts()[0], choice.toolkit.parts()[1]);
    for toolkit in &matrix.toolkits {
        if toolkit.cuda == *choice.toolkit {
            must(
                lifted || driver.is_none_or(|driver| *driver >= toolkit.min_driver),
                "the driver is too old",
            );
        }
    }
    let mut newest_cuda = None;
    for branch in &matrix.branches {
        if driver.is_some_and(|driver| branch.branch <= driver.major()) {
            newest_cuda = newest_cuda.max(Some((branch.max_cuda.major(), branch.max_cuda.minor())));
        }
    }
    let compiles = |cuda: (u32, u32)| driver.is_none() || lifted || newest_cuda >= Some(cuda);
    let ptx_cuda = choice.ptx_cuda.map_or((major, minor), |cuda| (cuda.major(), cuda.minor()));
    let holds = |code: &[ComputeCapability], gpu| code.iter().any(|one| *one <= gpu);
    let ptx_runs = |code: &[ComputeCapability], gpu| compiles(ptx_cuda) && holds(code, gpu);
    let only_ptx = arch.is_some_and(<[ComputeCapability]>::is_empty) && !ptx.is_empty();
    must(!only_ptx || compiles(ptx_cuda), "the driver does not compile the PTX");
    for gpu in choice.target.gpus.iter().map(|gpu| gpu.compute_capability) {
        let unread = matrix.compilers.iter().find(|one| one.cuda.parts()[..2] == [major, minor]);
        let has_code = match (arch, unread) {
            (Some(arch), _) => cubin(arch, gpu) || ptx_runs(ptx, gpu),
            (None, Some(compiler)) => cubin(&compiler.targets, gpu),
            (None, None) => true,
        };
        must(has_code, "no code for the GPU");
        for row in matrix.capabilities.iter().filter(|row| row.cc == gpu) {
            let dropped =
                row.last_driver_branch.zip(driver).is_some_and(|(last, driver)| driver.major() > last);
            must(!dropped, "the driver dropped the GPU");
            let unknown = driver.is_some_and(|driver| newer_than_the_branch(matrix, driver, gpu));
            must(!unknown, "the driver does not know the GPU");
            let below = |branch: &DriverBranch| driver.is_some_and(|driver| branch.branch <= driver.major());
            let branch =
                matrix.branches.iter().filter(|branch| below(branch)).max_by_key(|branch| branch.branch);
            must(branch.is_none_or(|branch| branch.oldest_gpu <= gpu), "the branch begins with newer GPUs");
            let last = row.last_cuda.as_ref().map(|last| (last.major(), last.minor()));
            must(last.is_none_or(|last| last >= (major, minor)), "the toolkit dropped the GPU");
        }
        for build in &matrix.cudnn {
            let own = build.machine == choice.target.machine && u32::from(build.cuda_major) == major;
            if own && Some(&build.version) == choice.cudnn {
                let has_ptx = compiles((major, minor)) && holds(&build.code.ptx, gpu);
                let runs = cubin(&build.code.sass, gpu) || has_ptx;
                must(runs, "cuDNN has no code for the GPU");
            }
        }
    }
}
