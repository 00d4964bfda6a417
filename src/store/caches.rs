//! Every cache: where it is, what its key holds, and what keeps a wrong value out. A test compares the places with the code.

/// A place where a value lasts from one run to another.
pub struct Cache {
    /// Where: a directory of the cache or the state directory, or a volume of the engine.
    pub place: &'static str,
    /// What is kept.
    pub value: &'static str,
    /// What the key holds: everything that could change the value.
    pub key: &'static str,
    /// Who can fill it, and what is compared when it is read.
    pub guard: &'static str,
}

/// All of them. Records of the cache directory are sealed with the key of the state directory; another one's are not read.
pub const CACHES: [Cache; 22] = [
    Cache {
        place: "CACHE/sha256",
        value: "downloads, wheels that were built, layers",
        key: "SHA-256 of the bytes",
        guard: "hashed when it is used; a damaged file is replaced",
    },
    Cache {
        place: "CACHE/base",
        value: "archives of bootstrapped bases",
        key: "SHA-256 in the record `base`",
        guard: "hashed when it is imported",
    },
    Cache {
        place: "STATE/base",
        value: "the base of a list of packages; the image that resolves, from whose list new locks start for a day",
        key: "suite, processor, recipe, and the SHA-256 of each package; of the image that resolves the processor",
        guard: "made of signed packages, or of a list in a lock for that list alone",
    },
    Cache {
        place: "layers",
        value: "layers of a step (system, distribution packages, /usr/local/cuda), and the directories of an image",
        key: "layers below, id of a base that is an image, instructions, hashes of scripts and packages",
        guard: "sealed; a layer is hashed when it is used",
    },
    Cache {
        place: "layers/taken",
        value: "layers that another machine finished",
        key: "that of the step",
        guard: "sealed; used only where the lock records the same digests",
    },
    Cache {
        place: "layers/byte-code-2",
        value: "byte code of a wheel",
        key: "SHA-256 of the wheel, all layers of the image that compiled it, our script",
        guard: "sealed; compiled without network, other packages and site; only modules that were sent are taken",
    },
    Cache {
        place: "layers/packed",
        value: "size and digest of a compressed layer",
        key: "digest of the layer, version of the compressor",
        guard: "sealed",
    },
    Cache {
        place: "layers/recipes",
        value: "the sources of each layer of an image",
        key: "id of the image",
        guard: "sealed; every layer is compared with its digest when it is made again",
    },
    Cache {
        place: "layers/digests",
        value: "digests of a layer of wheels",
        key: "SHA-256 of each wheel, left-out paths, Python, layout",
        guard: "sealed; compared when the layer is written",
    },
    Cache {
        place: "layers/wheels",
        value: "files of a wheel with modes and hashes",
        key: "name and SHA-256 of the wheel, Python, layout",
        guard: "sealed",
    },
    Cache {
        place: "layers/symbols-1",
        value: "symbol tables of libraries",
        key: "SHA-256 of the wheel; the number counts versions of the reader",
        guard: "sealed",
    },
    Cache {
        place: "STATE/uv",
        value: "SHA-256 of the program in a wheel of uv",
        key: "SHA-256 of the wheel",
        guard: "the program is hashed when it is used",
    },
    Cache {
        place: "STATE/wheel-addresses",
        value: "address of a wheel",
        key: "SHA-256 of the wheel",
        guard: "the file from there is compared with that hash",
    },
    Cache {
        place: "STATE/source-builds",
        value: "wheel of a source build",
        key: "archive, patches, environment, compilers, build requirements; all packages and wheels below, a base that is an image by its \
              digest, uv where it is not this release's",
        guard: "compiled without network and secrets; hashed when it is used",
    },
    Cache {
        place: "STATE/content-of-images",
        value: "content digest of an image",
        key: "id of the image",
        guard: "computed here from an export",
    },
    Cache {
        place: "STATE/content",
        value: "list of files behind a content digest",
        key: "hash of the lock",
        guard: "used only where its digest is the recorded one",
    },
    Cache {
        place: "STATE/newest-indexes",
        value: "date of the newest signed index",
        key: "mirror and suite",
        guard: "only signed indexes; it can only refuse",
    },
    Cache {
        place: "volume envforge-index-ID",
        value: "answers of the indexes of your settings; uv",
        key: "address of the index",
        guard: "written by our uv alone; not mounted where a project's index or a built wheel takes part; uv is hashed",
    },
    Cache {
        place: "volume envforge-lists-ID",
        value: "apt's lists, for a day",
        key: "sources, keys, architectures and configuration of apt",
        guard: "written by our apt alone, which checks signatures; an older list than was seen is refused",
    },
    Cache {
        place: "volume envforge-uv-LOCK",
        value: "downloads of uv in builds by the builder `dockerfile` and of exported Dockerfiles",
        key: "hash of the lock",
        guard: "mounted in builds of the same lock alone",
    },
    Cache {
        place: "volume envforge-compiler-KEY",
        value: "results of compilers",
        key: "SHA-256 of the archive and of uv, all layers and variables of the image that compiles",
        guard: "mounted in builds of the same key alone",
    },
    Cache {
        place: "the engine's build cache",
        value: "steps of the builder `dockerfile` and of source builds",
        key: "the engine's: image below, instruction, files by a hash keyed with a secret of the state directory",
        guard: "the built image is compared with the plan",
    },
];
