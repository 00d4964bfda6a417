//! A date in a request against the indexes of its settings, before any of them is asked.

use crate::model::compat::tables::Channel;
use crate::model::lock::FRAMEWORK_INDEX;
use crate::model::stack::Stack;
use crate::packages::PackagesError;
use crate::settings::Settings;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::error::CommandError;
use crate::workflow::session::downloads;

/// Rejects a date next to an index that is one page of links: such a page lists no upload times.
pub(crate) fn check_dated_indexes(
    settings: &Settings,
    wanted: &BuildRequest,
    stack: &Stack,
) -> Result<(), CommandError> {
    if wanted.added.as_of.is_none() {
        return Ok(());
    }
    let own = (stack.channel == Channel::Framework).then(|| downloads(settings)).transpose()?;
    let own = own.and_then(|(_, index)| index.own_index(stack)).map(|index| (FRAMEWORK_INDEX, index));
    let requested = wanted.indexes.iter().map(|(name, index)| (name.as_str(), index.clone()));
    match own.into_iter().chain(requested).find(|(_, index)| index.is_flat()) {
        Some((name, _)) => Err(PackagesError::FlatWithDate { name: name.to_owned() }.into()),
        None => Ok(()),
    }
}
