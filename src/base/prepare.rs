//! Has the base that is wanted: chooses the provider and asks it.

use std::sync::Arc;

use super::bootstrap::{Bootstrap, is_bootstrappable};
use super::error::BaseError;
use super::image::image_base;
use super::request::{Base, BaseRequest, ProviderChoice};
use crate::engine::Engine;
use crate::fetch::Fetcher;
use crate::lock::BaseProvider;
use crate::report::{Event, Reporter};
use crate::store::Store;

/// The base of a request, present in the engine. What was made before is used again.
pub async fn prepare(
    engine: &dyn Engine,
    request: &BaseRequest<'_>,
    store: &Store,
    fetch: &Fetcher,
    reporter: Arc<dyn Reporter>,
) -> Result<Base, BaseError> {
    if let Some(locked) = request.locked
        && locked.name != request.name
    {
        return Err(BaseError::OtherBase { wanted: request.name.clone(), found: locked.name.clone() });
    }
    let bootstrap = Bootstrap { engine, store, fetch, reporter: Arc::clone(&reporter), request };
    match choice(request) {
        ProviderChoice::Image => image_base(engine, request, reporter).await,
        ProviderChoice::Bootstrap => bootstrap.base().await,
        ProviderChoice::Auto => match image_base(engine, request, Arc::clone(&reporter)).await {
            Err(BaseError::NotPullable { reference, source }) if is_bootstrappable(&request.suite) => {
                tracing::debug!(%reference, %source, "no image");
                let text = format!(
                    "image `{reference}` is neither local nor can it be pulled: the base is built from the \
                     distribution's packages"
                );
                reporter.report(Event::Note { text });
                bootstrap.base().await
            }
            other => other,
        },
    }
}

/// A lock has chosen already.
fn choice(request: &BaseRequest<'_>) -> ProviderChoice {
    match request.locked.map(|locked| locked.provider) {
        Some(BaseProvider::Image) => ProviderChoice::Image,
        Some(BaseProvider::Bootstrap) => ProviderChoice::Bootstrap,
        None => request.provider,
    }
}
