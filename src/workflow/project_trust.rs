//! One question per project and content: a project that asks for more than its own folder.

use std::io::IsTerminal as _;

use crate::model::project::HostRequests;
use crate::report::Event;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::confirm::confirm;
use crate::workflow::error::CommandError;
use crate::workflow::request_error::RequestError;
use crate::workflow::session::Session;

/// Fails unless the user trusts what the project asks for: by `--trust`, by the configuration, or by an answer.
pub(crate) async fn check(session: &Session<'_>, wanted: &BuildRequest) -> Result<(), CommandError> {
    let Some(folder) = &wanted.folder else { return Ok(()) };
    let Some(requests) = HostRequests::of(folder, &wanted.shell, &wanted.added.run) else { return Ok(()) };
    let record = format!("trusted-projects/{}", requests.hash);
    if session.settings.trust.covers(folder) || session.store.read_state(&record)?.is_some() {
        return Ok(());
    }
    let trusted = wanted.trust || (is_terminal() && asked(session, folder.as_str(), &requests).await);
    if !trusted {
        return Err(RequestError::Untrusted { folder: folder.to_string(), requests: requests.lines }.into());
    }
    let text = format!("{folder}\n{}\n", requests.lines.join("\n"));
    Ok(session.store.write_state(&record, text.as_bytes())?)
}

fn is_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

async fn asked(session: &Session<'_>, folder: &str, requests: &HostRequests) -> bool {
    let list = requests.lines.iter().fold(String::new(), |all, line| all + "\n  - " + line);
    let text = format!("the project in {folder} asks for more than its own directory:{list}");
    session.reporter.report(Event::Warning { text });
    confirm("trust this project?").await
}
