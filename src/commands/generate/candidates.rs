//! Values that complete a command line: specs, GPUs and packages of the matrix, images and containers of the engine.

use crate::model::compat::Matrix;
use crate::model::request::CandidateKind;
use crate::model::resolve::{ResolveOptions, entries};
use crate::model::target::Target;
use crate::report::Printer;
use crate::settings::Settings;
use crate::workflow::own_images::own_images;
use crate::workflow::session::LazySession;
use crate::workflow::shell::shells;
use crate::workflow::supported::newest_patches;
use crate::workflow::target::machine;

/// Prints the values that begin so, one per line. A value that cannot be found out is left out: a completion has no errors.
pub(super) async fn print(kinds: &[CandidateKind], prefix: &str, settings: &Settings) {
    let (mut all, lazy) = (Vec::new(), LazySession::of(settings));
    for kind in kinds {
        all.extend(match kind {
            CandidateKind::Specs => specs(&settings.matrix),
            CandidateKind::Gpus => settings.matrix.gpus.iter().map(|gpu| gpu.name.clone()).collect(),
            CandidateKind::Images => images(&lazy).await,
            CandidateKind::Containers => containers(&lazy).await,
            CandidateKind::Packages => packages(&settings.matrix),
        });
    }
    all.retain(|value| value.starts_with(prefix));
    if !all.is_empty() {
        Printer.text(&all.join("\n"));
    }
}

/// The products, and each of their minor releases with its CUDA.
fn specs(matrix: &Matrix) -> Vec<String> {
    let target = Target::any(machine(&crate::model::request::TargetOptions::default(), matrix));
    let found = newest_patches(entries(matrix, None, &target, &ResolveOptions::default()));
    let products = matrix.products.iter().map(|product| product.name.clone());
    products.chain(found.into_iter().map(|entry| entry.spec.to_string())).collect()
}

/// The packages whose releases the matrix holds to a framework or to CUDA.
fn packages(matrix: &Matrix) -> Vec<String> {
    matrix.coupled_packages.iter().map(|coupled| coupled.package.clone()).collect()
}

async fn images(lazy: &LazySession<'_>) -> Vec<String> {
    let Ok(session) = lazy.session().await else { return Vec::new() };
    own_images(session).await.unwrap_or_default().into_iter().map(|named| named.reference).collect()
}

async fn containers(lazy: &LazySession<'_>) -> Vec<String> {
    let Ok(session) = lazy.session().await else { return Vec::new() };
    shells(&*session.containers).await.unwrap_or_default().into_iter().map(|shell| shell.name).collect()
}
