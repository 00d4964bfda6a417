//! The whole way from a release archive to a checked image, with a CUDA project of a few files in the place of the framework:
//! archive from a server of the test, nvcc 11.8 of the distribution with gcc 11, our patch, a wheel, static checks.

use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use camino::Utf8PathBuf;
use envforge::base::{
    AptSources, Base, BaseRequest, BaseTools, MirrorSources, ProviderChoice, discover, prepare,
};
use envforge::engine::{Docker, EngineSettings};
use envforge::fetch::{FetchSettings, Fetcher};
use envforge::model::address::Address;
use envforge::model::compat::Matrix;
use envforge::model::compat::tables::SourceBuild;
use envforge::model::resolve::{ResolveOptions, resolve};
use envforge::model::stack::Stack;
use envforge::model::target::Target;
use envforge::model::versions::Machine;
use envforge::packages::{Archive, IndexSettings, LocalWheel, PackageSettings, ResolverContext};
use envforge::registry::Registry;
use envforge::report::{Event, Reporter};
use envforge::settings::image_registry::RegistrySettings;
use envforge::source_build::{Recipe, SourceError, SourceRequest, build_wheel};
use envforge::store::Store;

use crate::framework::TORCH_2_8_CU118;
use crate::index::{Fault, Index};
use crate::scene::{Scene, files_below, python_in, shared_cache};
use crate::source::{SPEC, TAG};
use crate::wheels::sha256;

const PROJECTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/source");
const ARCHIVE: &str = "small-1.tar.gz";

/// A project with the Python files of the framework as a release archive.
fn archive(project: &str) -> Vec<u8> {
    let project = Path::new(PROJECTS).join(project);
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for path in files_below(&project) {
        let name = path.strip_prefix(&project).expect("below it").to_string_lossy().into_owned();
        files.push((name, std::fs::read(&path).expect("a fixture")));
    }
    let wheels = TORCH_2_8_CU118.wheels("cp311", "source");
    let torch = wheels.iter().find(|wheel| wheel.project == "torch").expect("there");
    let mut wheel = zip::ZipArchive::new(std::io::Cursor::new(&torch.bytes)).expect("a wheel");
    for number in 0..wheel.len() {
        let mut file = wheel.by_index(number).expect("a file of it");
        let name = file.name().to_owned();
        if name.starts_with("torch/") {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).expect("memory takes it");
            files.push((name, bytes));
        }
    }
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append_data(&mut header, format!("small-1/{name}"), bytes.as_slice()).expect("memory takes it");
    }
    tar.into_inner().expect("memory takes it").finish().expect("memory takes it")
}

/// Keeps what is reported, and says when a line contains a text.
#[derive(Default)]
struct Heard {
    lines: Mutex<Vec<String>>,
    compiling: tokio::sync::Notify,
}

impl Reporter for Heard {
    fn report(&self, event: Event) {
        let line = match event {
            Event::StepOutput { line, .. } => line,
            Event::Note { text } => text,
            _ => return,
        };
        if line.contains("compiling twice.cu") {
            self.compiling.notify_one();
        }
        self.lines.lock().expect("no panic while held").push(line);
    }
}

impl Heard {
    fn count(&self, text: &str) -> usize {
        self.lines.lock().expect("no panic while held").iter().filter(|line| line.contains(text)).count()
    }

    /// How often the compiler's cache had the answer, as it said last.
    fn cache_hits(&self) -> u64 {
        let lines = self.lines.lock().expect("no panic while held");
        let last = |name: &str| {
            let line = lines.iter().rev().find_map(|line| line.split_once(name))?;
            line.1.split_whitespace().next()?.parse::<u64>().ok()
        };
        last("direct_cache_hit").unwrap_or(0) + last("preprocessed_cache_hit").unwrap_or(0)
    }
}

struct Fixture {
    scene: Scene,
    server: Index,
    engine: Docker,
    fetcher: Fetcher,
    store: Store,
    settings: PackageSettings,
    base: Base,
    row: SourceBuild,
    stack: Stack,
    mirrors: Vec<Address>,
}

fn apt_sources() -> MirrorSources {
    MirrorSources {
        main: std::env::var("ENVFORGE_DEBIAN_MIRROR").ok(),
        security: std::env::var("ENVFORGE_DEBIAN_SECURITY_MIRROR").ok(),
        apt: AptSources::default().texts().expect("apt sources").to_vec(),
    }
}

impl Fixture {
    async fn new(project: &str) -> Self {
        let scene = Scene::new();
        let others = TORCH_2_8_CU118.wheels("cp311", "source");
        scene.index.publish(others.into_iter().filter(|wheel| !wheel.file.contains("+cu118")).collect());
        let docker_host = std::env::var("DOCKER_HOST").ok();
        let connection = EngineSettings { docker_host, ..EngineSettings::default() };
        let engine = Docker::connect(&connection).await.expect("an engine");
        let path = |path: &Path| Utf8PathBuf::from_path_buf(path.to_owned()).expect("UTF-8");
        let store = Store::open(&path(shared_cache()), &path(&scene.program.path("state"))).expect("a store");
        let fetcher = Fetcher::new(&FetchSettings::default()).expect("a client");
        let request = BaseRequest {
            name: "debian:12".to_owned(),
            suite: "bookworm".to_owned(),
            provider: ProviderChoice::Auto,
            machine: Machine::X86_64,
            mirrors: apt_sources(),
            locked: None,
            upgrade: false,
            accept_expired: false,
            now: jiff::Timestamp::now(),
        };
        let registry = Registry::new(fetcher.clone(), RegistrySettings::default());
        let reporter = Arc::new(Heard::default());
        let means =
            BaseTools { engine: &engine, registry: &registry, store: &store, fetch: &fetcher, reporter };
        let base = prepare(&means, &request).await.expect("a base");
        let found = discover(&apt_sources()).expect("a mirror");
        let index = ["ENVFORGE_INDEX", "UV_DEFAULT_INDEX", "PIP_INDEX_URL"];
        let index = index.iter().find_map(|name| std::env::var(name).ok());
        let settings = PackageSettings {
            index: IndexSettings {
                default: index.map(|text| text.parse().expect("an address")),
                ca_bundle: std::fs::read("/etc/ssl/certs/ca-certificates.crt").ok().map(Bytes::from),
                ..IndexSettings::default()
            },
            archives: Archive::debian("bookworm", &found.main, found.security.as_ref(), Some("non-free")),
            ..PackageSettings::default()
        };
        let server = Index::local(Vec::new());
        let archive = archive(project);
        let mut row = Matrix::embedded().source_builds[0].clone();
        ARCHIVE.clone_into(&mut row.archive);
        row.sha256 = Some(sha256(&archive));
        server.serve(&format!("/{ARCHIVE}"), archive);
        let spec = SPEC.parse().expect("a spec");
        let target = Target::any(Machine::X86_64);
        let stack = resolve(&spec, &target, Matrix::embedded(), &ResolveOptions::default());
        let stack = stack.expect("it resolves");
        let mirrors = [found.main].into_iter().chain(found.security).collect();
        Self { scene, server, engine, fetcher, store, settings, base, row, stack, mirrors }
    }

    /// Leaves out what a project of one file does not need: the large libraries and the tools of the release's build.
    fn lean(mut self) -> Self {
        self.row.build_wheels = vec!["setuptools<80".to_owned(), "wheel".to_owned()];
        self.stack.parts.retain(|name, _| name.contains("runtime"));
        (self.stack.cudnn, self.stack.nccl) = (None, None);
        self
    }

    async fn build(&self, heard: &Arc<Heard>, jobs: u64) -> Result<LocalWheel, SourceError> {
        let address: Address = format!("{}/{ARCHIVE}", self.server.url()).parse().expect("an address");
        let reporter: Arc<dyn Reporter> = Arc::<Heard>::clone(heard);
        let tools = ResolverContext {
            engine: &self.engine,
            store: &self.store,
            fetcher: &self.fetcher,
            settings: &self.settings,
            reporter,
        };
        let request = SourceRequest {
            recipe: Recipe { stack: &self.stack, row: &self.row },
            base_reference: &self.base.reference,
            base: &self.base.locked(),
            mirrors: &self.mirrors,
            archives: &[address],
            jobs,
        };
        Box::pin(build_wheel(&tools, &request)).await
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs docker and downloads gigabytes of NVIDIA's packages: cargo test --features docker --test docker -- --ignored source_build_makes_a_che"]
async fn source_build_makes_a_checked_image_of_a_cuda_project() {
    let mut f = Fixture::new("small").await.lean();
    let heard = Arc::new(Heard::default());

    f.server.fail(ARCHIVE, Fault::Status(404));
    let error = f.build(&heard, 1).await.expect_err("no archive");
    assert!(error.to_string().contains(ARCHIVE), "{error}");
    f.server.heal();

    // Interrupted in the middle of the compiler: nothing is left. The download was cut, too, and goes on by itself.
    f.server.fail(ARCHIVE, Fault::CutOnce);
    tokio::select! {
        done = f.build(&heard, 1) => panic!("it was to be interrupted: {done:?} {:#?}", heard.lines),
        () = heard.compiling.notified() => {}
    }
    f.scene.assert_nothing_left();

    // Two compilers are too many for the memory, one is not.
    let wheel = f.build(&heard, 2).await.unwrap_or_else(|error| panic!("{error} {:#?}", heard.lines));
    assert_eq!(heard.count("retrying with 1"), 1, "{:#?}", heard.lines);
    assert_eq!(wheel.file, "torch-2.8.0+cu118-cp311-cp311-linux_x86_64.whl");
    f.scene.assert_nothing_left();

    // The same again is not built again.
    let compiled = heard.count("compiling twice.cu");
    assert_eq!(f.build(&heard, 1).await.expect("kept"), wheel);
    assert_eq!(heard.count("compiling twice.cu"), compiled);

    // Something else is, and the compiler's cache has what did not change.
    let hits = heard.cache_hits();
    f.row.environment.insert("ANOTHER".to_owned(), "1".to_owned());
    f.build(&heard, 1).await.expect("built");
    assert!(heard.cache_hits() > hits, "{:#?}", heard.lines);

    let file = f.scene.program.path(&wheel.file);
    std::fs::copy(f.store.blob_path(&wheel.sha256).expect("a path"), &file).expect("a folder of ours");
    f.scene.succeed(&["build", SPEC, "--target", "any", "--wheel", &file.to_string_lossy()]);
    let said = python_in(
        TAG,
        "import ctypes, glob, torch; path = glob.glob(torch.__path__[0] + '/twice*.so')[0]; \
         print(torch.__version__, ctypes.CDLL(path).compiled_with())",
    );
    assert_eq!(said, "2.8.0+cu118 11080");
    f.scene.assert_only_tags_added();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs docker and downloads gigabytes of NVIDIA's packages: cargo test --features docker --test docker -- --ignored builder_has_every_requir"]
async fn builder_has_every_required_header_library_and_tool() {
    let mut f = Fixture::new("headers").await;
    // Our patch is for a file that this project does not have.
    f.row.patches.clear();
    let heard = Arc::new(Heard::default());
    f.build(&heard, 1).await.unwrap_or_else(|error| panic!("{error} {:#?}", heard.lines));
    assert_eq!(heard.count("everything is there"), 1, "{:#?}", heard.lines);
    f.scene.assert_nothing_left();
}
