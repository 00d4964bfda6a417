//! Consistency of driver branches, floors, forward-compatibility packages and toolkits.

use super::super::tables::{DriverBranch, ForwardCompat, Matrix, Toolkit};
use super::fault::{Faults, Problem};

pub(super) fn check(matrix: &Matrix, faults: &mut Faults) {
    branches(matrix, faults);
    for floor in &matrix.minor_floors {
        let known = branch(matrix, floor.linux.major()).is_some();
        faults.require(known, floor, "driver branch", floor.linux.major());
    }
    for package in &matrix.forward_compat {
        forward(matrix, package, faults);
    }
    for row in &matrix.toolkits {
        toolkit(matrix, row, faults);
    }
}

fn branch(matrix: &Matrix, number: u32) -> Option<&DriverBranch> {
    matrix.branches.iter().find(|row| row.branch == number)
}

/// Checks that newer branches support no older CUDA and no older GPU, and that the oldest GPU matches the capabilities.
fn branches(matrix: &Matrix, faults: &mut Faults) {
    let mut sorted: Vec<_> = matrix.branches.iter().collect();
    sorted.sort_by_key(|row| row.branch);
    for pair in sorted.windows(2) {
        let (old, new) = (pair[0], pair[1]);
        if new.max_cuda < old.max_cuda {
            let says = format!("CUDA {}", new.max_cuda);
            faults.contradiction(new, says, old, format!("CUDA {}", old.max_cuda));
        }
        if new.oldest_gpu < old.oldest_gpu {
            let says = format!("oldest GPU {}", new.oldest_gpu);
            faults.contradiction(new, says, old, format!("oldest GPU {}", old.oldest_gpu));
        }
    }
    for row in sorted {
        let known = matrix.capabilities.iter().any(|capability| capability.cc == row.oldest_gpu);
        faults.require(known, row, "compute capability", row.oldest_gpu);
        for capability in &matrix.capabilities {
            let dropped = capability.last_driver_branch.is_some_and(|last| row.branch > last);
            if dropped != (capability.cc < row.oldest_gpu) {
                let last = capability.last_driver_branch.map_or("none".to_owned(), |last| last.to_string());
                let says = format!("oldest GPU {}", row.oldest_gpu);
                faults.contradiction(row, says, capability, format!("last driver branch {last}"));
            }
        }
    }
    for capability in &matrix.capabilities {
        if let Some(last) = capability.last_driver_branch {
            faults.require(branch(matrix, last).is_some(), capability, "driver branch", last);
        }
    }
}

fn forward(matrix: &Matrix, package: &ForwardCompat, faults: &mut Faults) {
    let bases = package.base_branches.iter().map(|number| (number, false));
    for (number, native) in bases.chain(package.native.iter().map(|number| (number, true))) {
        let Some(row) = branch(matrix, *number) else {
            faults.unknown(package, "driver branch", number);
            continue;
        };
        let agrees = if native { row.max_cuda == package.cuda } else { row.max_cuda < package.cuda };
        if !agrees {
            let relation = if native { "that of" } else { "new to" };
            let says = format!("CUDA {} is {relation} branch {number}", package.cuda);
            faults.contradiction(package, says, row, format!("CUDA {}", row.max_cuda));
        }
    }
    let name = format!("cuda-compat-{}-{}", package.cuda.major(), package.cuda.minor());
    if package.package != name {
        faults.add(package, Problem::Unknown { what: "package", name: package.package.clone() });
    }
}

fn toolkit(matrix: &Matrix, row: &Toolkit, faults: &mut Faults) {
    match row.branch {
        Some(number) => {
            if !is_driven(matrix, row, number, faults) {
                return;
            }
        }
        None => faults.require(row.native_driver.is_none(), row, "branch of the native driver of", &row.cuda),
    }
    let floor = matrix.minor_floors.iter().find(|floor| u32::from(floor.cuda_major) == row.cuda.major());
    if let Some(floor) = floor
        && floor.linux < row.min_driver
    {
        let says = format!("lowest driver {}", row.min_driver);
        faults.contradiction(row, says, floor, format!("{}", floor.linux));
    }
}

/// Checks that a toolkit's branch is known and is that of its CUDA and its driver; false for an unknown branch.
fn is_driven(matrix: &Matrix, row: &Toolkit, number: u32, faults: &mut Faults) -> bool {
    let Some(branch) = branch(matrix, number) else {
        faults.unknown(row, "driver branch", number);
        return false;
    };
    let same = branch.max_cuda.major() == row.cuda.major() && branch.max_cuda.minor() == row.cuda.minor();
    if !same {
        let says = format!("branch {number} is that of CUDA {}", row.cuda);
        faults.contradiction(row, says, branch, format!("CUDA {}", branch.max_cuda));
    }
    if let Some(native) = row.native_driver.as_ref() {
        if native.major() != number {
            let says = format!("driver {native}");
            faults.contradiction(row, says, row, format!("branch {number}"));
        }
        if *native < row.min_driver {
            let says = format!("native driver {native}");
            faults.contradiction(row, says, row, format!("lowest driver {}", row.min_driver));
        }
    }
    true
}
