//! The objects that `--json` prints. A test compares the fields with those of real output.

use crate::model::markdown::{MarkdownPage, code};

/// A call, what its object is, and the object's fields.
type Object = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const STATE: &str = "state of that image id by the reports of this machine, as for `images`";
const PROVEN: &str = "each report that stands";
const FAILED: &str = "each failure that no later run on the same GPU and driver has settled";

const OBJECTS: &[Object] = &[
    (
        "envforge",
        "where one is",
        &[
            ("project", "directory of the project, or null"),
            ("spec", "its spec"),
            ("lock", "`missing`, `stale` or `up-to-date`"),
            ("engine", "true if a container engine answers"),
            ("gpu", "true if the engine may have a GPU"),
            ("image", "the image that `shell` opens: `name`, and what is proven of it, as for `images`"),
            ("next", "the next command"),
        ],
    ),
    (
        "envforge plan pytorch-cuda:2.8-cu128",
        "the resolved versions, or every reason why there are none",
        &[
            (
                "spec",
                "as requested; requested packages are in `companions`, or in `not_checked` if only the package index knows them",
            ),
            (
                "verdict",
                "`ok`; `unknown` if the GPU code of the binary or the base was not read, with `warnings`; `impossible`",
            ),
            ("name", "the image's name"),
            ("flavour", "`runtime` or `devel`"),
            ("platform", "`linux/amd64` or `linux/arm64`"),
            ("channel", "index of the framework"),
            ("experimental", "true if upstream calls the build so"),
            ("local", "true for a row of `[matrix] local`"),
            ("licence", "licence of the product if it restricts redistribution, or null"),
            ("stack", "resolved versions by component"),
            ("requires", "least driver, GPUs with machine code, PTX"),
            ("target", "GPUs and driver that were resolved for"),
            ("base", "base image"),
            ("reasons", "each choice: `field`, `chosen`, `because`, `source`"),
            ("refusals", "rules that refuse the spec"),
            ("alternatives", "closest specs that work"),
        ],
    ),
    (
        "envforge list pytorch-cuda",
        "published variants",
        &[("entries", "each `spec` with its Pythons, libraries, GPUs, driver, `runs_here` and `why_not`")],
    ),
    (
        "envforge lock",
        "the lock file",
        &[
            ("name", "the image's name"),
            ("lock", "hash of the lock"),
            ("file", "its path"),
            ("new", "true if it was written now"),
            ("packages", "number of distribution packages"),
            ("wheels", "number of wheels"),
            ("content", "content digest of the image, if recorded"),
            (
                "from",
                "with `--from`, the other lock file: `file`, `kept` (number of versions), `moved` (each `name`, `from`, `to`, `reason` if known), `other_files` (same version, another file: each `name`, `version`, `file`, `sha256`), `unused` (packages that are not in the image), `left` (each `name`, `reason`); null otherwise",
            ),
            (
                "misfits",
                "packages that do not go together, as far as that is known without a download: each `kind` (`same-path`, `other-cuda`, `system-library`, `pre-release`, `old`), `packages`, `text`, `apt` (packages of the distribution that mend it), `libraries` (of the operating system, that the image lacks), `source`",
            ),
        ],
    ),
    (
        "envforge add einops",
        "packages that were added; `remove` prints the same",
        &[
            ("file", "path of envforge.toml"),
            ("changes", "each package: `name`, `from` and `to`, null where there was or is none"),
            ("lock", "the lock file, as `lock` prints it; null with `--dry-run`"),
        ],
    ),
    (
        "envforge lock --check",
        "the state of the lock file",
        &[("file", "its path"), ("fits", "true if it is up to date"), ("differences", "each difference")],
    ),
    (
        "envforge build pytorch-cuda:2.8-cu128",
        "an image that was built and checked",
        &[
            ("name", "the image's name"),
            ("tags", "tags it got; empty if a check failed"),
            ("pushed", "with `--push`, each `reference` with `digest`; otherwise left out"),
            ("attested", "with `--attest`, each image by its digest, with the key; otherwise left out"),
            ("image", "id of the image"),
            ("size", "bytes"),
            ("base", "reference of the base image"),
            ("lock", "hash of the lock"),
            ("lock_file", "path of the lock file"),
            ("content", "content digest, with `--locked` or `--push`; null otherwise"),
            (
                "misfits",
                "packages that do not go together, as `lock` prints them, by the wheels of the image and what their libraries need; with `--builder dockerfile` by the wheels that the cache has",
            ),
            ("verified", "true if every required check ran on a GPU that counts"),
            ("unverified_because", "why its tags end in `-unverified`; otherwise left out"),
            (
                "seconds",
                "duration of `lock`, `build`, `checks`, `content` and `push`; `parts` of `build`, which overlap: `downloads` of wheels, `system` and apt layers, digests of the layers of `wheels`, `byte_code`, `delivery` to the engine",
            ),
            (
                "present",
                "true if an earlier run had finished the image and nothing was made or checked; otherwise left out",
            ),
            (
                "stands",
                "true if the checks are those of an earlier run of the same image under the same conditions; otherwise left out",
            ),
            ("verdict", "the report, as that of `verify`"),
        ],
    ),
    (
        "envforge build pytorch-cuda:2.8-cu128 jax-cuda:0.7",
        "several images",
        &[(
            "builds",
            "each `spec` with `exit`, `error` and `hints`, and `build` as above; with `--dry-run` `plan`, a text",
        )],
    ),
    (
        "envforge outdated",
        "changes that a new lock would make; `lock --diff` prints the same",
        &[
            ("file", "path of the lock file"),
            ("created", "when the lock was made; null if there is none yet"),
            ("because", "each reason why the lock is out of date"),
            ("changes", "each `part` and `name` with `from` and `to`"),
            ("from", "with `lock --diff --from`, as `lock` prints it; null otherwise"),
        ],
    ),
    (
        "envforge why torch pytorch-cuda:2.8-cu128",
        "the requirements that lead to a package of the lock, and what chose its version",
        &[
            ("lock", "hash of the lock"),
            ("name", "the package"),
            ("version", "its version"),
            ("file", "its file"),
            ("index", "name of the index, or suite of the distribution"),
            ("layer", "layer of the image; null: a package of the distribution"),
            ("chosen", "reason of the version, as a clause"),
            ("source", "the fact behind it, where the matrix chose it; otherwise null"),
            ("bounds", "each requirement on its version, with the package that has it"),
            (
                "chains",
                "each way that leads to it: `requested_by` (`spec`, `project`, `every-image`), `requested`, and `through`, each with `name`, `version` and `requirement`",
            ),
            ("more_chains", "number of further ways"),
            ("unknown", "packages of the lock whose own requirements are not known here"),
        ],
    ),
    (
        "envforge push pytorch-cuda:2.8-cu128 box.test/torch:2.8",
        "where an image was pushed",
        &[
            ("image", "id of the image"),
            ("verified", "true if its tags are verified ones"),
            ("standing", STATE),
            ("proven", PROVEN),
            ("failed", FAILED),
            (
                "pushed",
                "each `reference` with `digest`; with `--platform`, `index`: digest of the index that the tag is",
            ),
            ("attested", "with `--attest`, each image by its digest, with the key"),
            (
                "evidence",
                "with `--evidence`, documents of evidence that were copied and not there before; else null",
            ),
        ],
    ),
    (
        "envforge evidence registry.example.com/torch:2.8",
        "the evidence of an image, with its signers",
        &[
            ("image", "the image by its digest"),
            ("index", "digest of the index that it was named by, or null"),
            ("checked", "false: no key was given, and anybody may have said it"),
            (
                "entries",
                "each `gpu`, `capability`, `count`, `nccl` (GPUs at once), `driver`, `level`, `outcome` (`passed`, `withdrawn`), `checked`, `agent`, `lock`, `engine`, `versions`, `passed`, `skipped`, `speeds`, `nodes` (with `--attest-nodes`: names with GPU UUIDs), `signer` (SHA-256 of the key), `issued`",
            ),
            ("ignored", "statements that do not count, a line each"),
        ],
    ),
    (
        "envforge evidence admit registry.example.com/torch:2.8 --here",
        "the answer for a machine: admitted, or not",
        &[
            ("image", "the image by its digest"),
            ("admitted", "true or false"),
            ("proofs", "an entry for each GPU that was asked for, as `evidence` prints it"),
            ("reasons", "reasons of a refusal, or notes about the proofs"),
        ],
    ),
    (
        "envforge evidence withdraw registry.example.com/torch:2.8",
        "the entries that were taken back",
        &[
            ("image", "the image by its digest"),
            ("withdrawn", "the entries"),
            ("standing", "number of entries of the key that still stand"),
        ],
    ),
    (
        "envforge export oci pytorch-cuda:2.8-cu128 image.tar",
        "the layout that was written",
        &[
            ("image", "id of the image"),
            ("path", "the directory or file"),
            ("digest", "digest of the manifest, the image's digest in a registry"),
            ("size", "bytes of all blobs"),
            ("evidence", "with `--evidence`, documents of evidence in it; else null"),
        ],
    ),
    (
        "envforge export squashfs pytorch-cuda:2.8-cu128 torch.sqsh",
        "the file that was written; `export sif` prints the same",
        &[
            ("image", "id of the image; null: nothing was written"),
            ("path", "the file"),
            ("size", "its bytes"),
            ("compression", "compression of its blocks: `zstd:1`; null: nothing was written"),
            ("written", "false: the file of this lock was there, in `[cluster] folder`"),
        ],
    ),
    (
        "envforge import image.tar torch:2.8",
        "the image that the engine has now",
        &[
            ("image", "id of the image"),
            ("tag", "its tag"),
            ("digest", "digest of the layout's manifest, the image's digest in a registry"),
            ("evidence", "with `--evidence`, documents of evidence that are kept; else null"),
        ],
    ),
    (
        "envforge shell pytorch-cuda:2.8-cu128 --jupyter",
        "the services of a container, once they answer; also those of `--detach`",
        &[
            ("name", "name of the container"),
            ("jupyter", "address with its token, or null"),
            ("ssh", "command, or null"),
            ("vscode", "address that VS Code opens, or null"),
            ("standing", STATE),
            ("proven", PROVEN),
            ("failed", FAILED),
        ],
    ),
    (
        "envforge vendor ./vendor",
        "a directory for offline builds",
        &[
            ("folder", "the directory"),
            ("lock", "hash of the lock"),
            ("matrix", "version of the matrix"),
            ("files", "number of files"),
            ("new", "number of files that were added now"),
            ("bytes", "size of all files"),
            ("evidence", "with `--evidence`, documents of evidence in it; else null"),
        ],
    ),
    (
        "envforge vendor ./vendor --check",
        "its integrity",
        &[
            ("folder", "the directory"),
            ("files", "number of files"),
            ("findings", "each problem: `what`, `file`, `path`"),
        ],
    ),
    (
        "envforge verify IMAGE",
        "the report of one image; several: `schema`, `verdict`, `reports`, `errors`",
        &[
            ("image", "id of the image"),
            ("name", "as requested"),
            ("verdict", "the overall result"),
            ("executed", "true if anything ran on a GPU"),
            ("level", "`static`, `quick`, `full` or `perf`"),
            (
                "checks",
                "each `id` with `outcome`, `detail`, `measured`, `expected`, `hint`; if `detail` leaves out problems, `measured` has them: `problem.001` and so on",
            ),
            ("gpus", "GPUs that the checks ran on"),
            ("not_proven", "compute capabilities of the target on which nothing ran"),
            ("versions", "versions found inside"),
            ("digests", "digests in registries"),
            ("seconds", "duration in the container"),
            ("checked", "time of the check, UTC"),
            ("engine", "name and version of the container engine"),
            ("lock", "hash of the lock"),
            ("sandboxed", "true if it was checked as an image from elsewhere: its own word"),
        ],
    ),
    (
        "envforge verify --merge reports",
        "one answer about many nodes; `verify --on` prints the same",
        &[
            ("image", "the image by its digest, or the file by its SHA-256; null with `--merge`"),
            (
                "verdict",
                "`passed`, `failed`, or `incomplete`: no node failed, and one that was asked gave no report",
            ),
            (
                "counts",
                "number of nodes in each state: `failed`, `no-report`, `slow`, `different`, `not-run`, `ok`",
            ),
            (
                "nodes",
                "each `node`, gravest first, with `state`, `action` (`drain`, `watch`, `use`, `none`), `why`, `host`, `job`, `boot_id`, `kernel`, `driver`, `runtime`, `agent`, `gpu_count`, `gpu_model`, `gpus` (`uuid`, `name`, `vbios`), `seconds`, `verdict`, `checks` (their number), `findings`, `speeds`, `older_reports`",
            ),
            ("matrix", "each `check` that is not ok everywhere, with each `outcome` and its `nodes`"),
            ("widespread", "checks that fail on more than half of the nodes"),
            ("drain", "with `--drain` each `node` to drain, and the `command` as a list of words"),
            ("attested", "with `--attest`, the image by its digest, with the key; else null"),
        ],
    ),
    (
        "envforge verify IMAGE@sha256:… --on slurm --as-they-free reports",
        "the submitted jobs; the answer comes with `verify --merge`",
        &[
            ("image", "the image by its digest, or the file by its SHA-256"),
            ("reports", "the directory of the reports"),
            ("jobs", "each `node` that has a job, and Slurm's number of the `job`"),
            ("not_run", "each `node` without one, and `why`"),
        ],
    ),
    (
        "envforge images",
        "images built by envforge",
        &[(
            "images",
            "each `id` with `name`, `spec`, `lock`, `tags`, `verified`, `size`, `shared`, `in_use`; `standing`: `verified`, `passed` (on a GPU, but not all that a verified tag requires), `failed`, `static-only` or `not-checked`; `proven` and `failed`: each report that stands, or that no later run has settled, with `level`, `gpus`, `driver`, `checked`; `evidence`: whose key proves it for this machine, by evidence that is kept here, as a line, or null",
        )],
    ),
    (
        "envforge inspect",
        "an image and its lock; `--sbom` prints SPDX 2.3",
        &[
            ("name", "as requested, or the tag"),
            ("image", "id of the image"),
            ("tags", "its tags"),
            ("size", "bytes"),
            ("labels", "labels of the image"),
            ("verified", "true if every required check passed on a GPU that counts"),
            ("standing", STATE),
            ("proven", PROVEN),
            ("failed", FAILED),
            (
                "evidence",
                "whose key proves it for this machine, with level, GPU, driver and date; null: no trusted key does, or this machine verified it itself",
            ),
            ("lock", "the lock file"),
        ],
    ),
    (
        "envforge diff old.lock envforge.lock",
        "two images or lock files",
        &[
            ("from", "the first"),
            ("to", "the second"),
            ("changes", "each `part` and `name` with `from` and `to`"),
            ("layers", "layers both have, and the number of each; null: one is not built"),
            ("paths", "paths that differ; null: unknown"),
        ],
    ),
    (
        "envforge size",
        "size by component",
        &[
            ("name", "the image"),
            ("size", "bytes"),
            ("components", "each `name` with `size` and `shared_with`"),
        ],
    ),
    (
        "envforge size --by gpu",
        "device code by architecture",
        &[
            ("name", "the image"),
            ("size", "bytes"),
            ("targets", "bytes of each architecture: `sm_90`, `compute_90`"),
            (
                "libraries",
                "each `path` with `size`, `code` by architecture, and `unknown` if it cannot be read",
            ),
        ],
    ),
    (
        "envforge prune --cache",
        "unused images",
        &[
            ("images", "as in `images`"),
            ("removed", "true if they were removed (`--yes`)"),
            ("volumes", "volumes of images that are gone"),
            ("cache", "number and bytes of unused files of the cache (with `--cache`)"),
            (
                "cluster",
                "files of former locks and of killed exports in the project's `[cluster] folder`: each with `path` and `size`",
            ),
        ],
    ),
    (
        "envforge init",
        "the project that the files of a folder ask for",
        &[
            ("file", "the project file; null: none was written"),
            ("spec", "its spec, or the one that the files ask for and that does not resolve"),
            ("files", "the files that were taken, the most believed first"),
            (
                "rows",
                "each thing that a file says: `change` (`kept`, `changed`, `offered`, `not-taken-over`), `file`, `line` (or null), `text`, `why`",
            ),
            ("error", "the reason without a project, or null"),
        ],
    ),
    (
        "envforge ps",
        "containers of `shell`",
        &[(
            "containers",
            "each `name` with `spec`, `image`, `state`, `folder`, `user`, `ports`, `gpus`, `gpu`, `started`, `uptime_seconds`; what is proven of its image, as for `images`",
        )],
    ),
    ("envforge stop --all", "stopped containers", &[("stopped", "their names")]),
    (
        "envforge doctor",
        "findings about this machine; `--report` adds facts",
        &[(
            "findings",
            "each `id` with `severity`, `text`, `hint`, and `from`: the file or variable that the setting comes from",
        )],
    ),
    (
        "envforge doctor --explain \"no kernel image is available for execution on the device\"",
        "known errors in a text",
        &[
            (
                "findings",
                "each known error: `id`, `text`, `hint`, `line`, `source`; `role`: `cause` (the first error of the text) or `consequence`; `tried`: the text shows that a fix was tried, and `hint` is the next one; `here`: what this machine has of what the fix depends on",
            ),
            ("lines", "lines of a log (`-`) with an error: `line`, `id`, `text`"),
        ],
    ),
    (
        "envforge compat abi ./my_extension-1.0-cp311-cp311-linux_x86_64.whl --spec pytorch-cuda:2.8-cu128",
        "the libraries of a wheel, and why they do not load with the locked PyTorch and CUDA",
        &[
            ("wheel", "file name of the wheel"),
            ("name", "name of the lock's image"),
            ("lock", "path of the lock file"),
            ("fits", "true if every library loads"),
            (
                "libraries",
                "each `library` with its `findings` (`kind`: `missing-symbol`, `missing-library`, `missing-version`, \
                 `other-processor` or `unreadable`; `text`) and the `optional` libraries without which it was not judged",
            ),
        ],
    ),
    (
        "envforge compat lint",
        "faults of the matrix",
        &[
            ("edition", "version of the matrix"),
            ("rows", "number of rows"),
            ("faults", "each fault with its row"),
        ],
    ),
    (
        "envforge compat show \"toolkit 12.8.1\"",
        "rows of the matrix",
        &[("edition", "version of the matrix"), ("rows", "each `row` with `file` and `fields`")],
    ),
];

pub(super) fn page() -> String {
    let mut page = MarkdownPage::new("JSON output");
    page.paragraph(
        "With `--json` a command prints one object on standard output, and messages on standard error. Each object has \
         `schema`, the version of its form; fields may be added within a version. `--progress json` prints the steps of a \
         command on standard error, an object each: [Progress](../how-to/ci.md#output-for-machines). Exit codes are the same as without it: \
         [Exit codes](exit-codes.md).",
    );
    for (call, what, fields) in OBJECTS {
        page.heading(2, &code(call));
        page.paragraph(&format!("Prints {what}."));
        page.list(fields.iter().map(|(name, meaning)| format!("{}: {meaning}", code(name))));
    }
    page.finish()
}
