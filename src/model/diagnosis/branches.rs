//! CUDA versions of drivers, as frameworks report them, and the branches of the driver.

/// The first branch of the driver for each CUDA.
const BRANCHES: &[((u32, u32), u32)] = &[
    ((10, 0), 410),
    ((10, 1), 418),
    ((10, 2), 440),
    ((11, 0), 450),
    ((11, 1), 455),
    ((11, 2), 460),
    ((11, 3), 465),
    ((11, 4), 470),
    ((11, 5), 495),
    ((11, 6), 510),
    ((11, 7), 515),
    ((11, 8), 520),
    ((12, 0), 525),
    ((12, 1), 530),
    ((12, 2), 535),
    ((12, 3), 545),
    ((12, 4), 550),
    ((12, 5), 555),
    ((12, 6), 560),
    ((12, 7), 565),
    ((12, 8), 570),
    ((12, 9), 575),
    ((13, 0), 580),
];

/// Returns the CUDA of a driver and its branch: `12.2` and 535 of `12020`.
pub(super) fn cuda_and_branch(number: &str) -> Option<(String, Option<u32>)> {
    let number = number.parse::<u32>().ok().filter(|number| (1000..100_000).contains(number))?;
    let cuda = (number / 1000, number % 1000 / 10);
    let branch = BRANCHES.iter().find(|(known, _)| *known == cuda).map(|(_, branch)| *branch);
    Some((format!("{}.{}", cuda.0, cuda.1), branch))
}
