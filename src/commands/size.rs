//! `size`: how large an image is, by component or by the GPU architectures of its device code.

use std::fmt::Write as _;

use serde::Serialize;

use super::inspect::save;
use crate::failure::Exit;
use crate::model::byte_size::{percent, readable};
use crate::model::image::device_code::DeviceCode;
use crate::model::image::inventory::{Component, components, sharers};
use crate::model::image::plan::LOCK_LABEL;
use crate::model::request::{self, SizeBy};
use crate::model::wrap::{hanging, wrapped};
use crate::pages::{SizedComponent, SizedImage, size_page};
use crate::report::Printer;
use crate::settings::Settings;
use crate::workflow::device_code::device_code_of;
use crate::workflow::error::CommandError;
use crate::workflow::image_error::ImageError;
use crate::workflow::image_info::described;
use crate::workflow::session::LazySession;
use crate::workflow::spec_parts::restricted_name;

/// What `size --json` prints.
#[derive(Serialize)]
struct SizeReport<'a> {
    schema: u32,
    name: &'a str,
    size: u64,
    components: &'a [SizeRow],
}

/// One component, and how many other images have it.
#[derive(Serialize)]
struct SizeRow {
    #[serde(flatten)]
    component: Component,
    shared_with: usize,
}

/// What `size --by gpu --json` prints.
#[derive(Serialize)]
struct CodeReport<'a> {
    schema: u32,
    name: &'a str,
    size: u64,
    #[serde(flatten)]
    code: &'a DeviceCode,
}

pub(super) async fn size(args: &request::Size, settings: &Settings) -> Result<Exit, CommandError> {
    let name = restricted_name(args.name.as_ref(), &args.parts, &settings.matrix)?;
    let lazy = LazySession::of(settings);
    let session = lazy.session().await?;
    let found = described(session, name.as_deref(), &args.project).await?;
    let Some(image) = &found.image else {
        return Err(ImageError::SpecNotBuilt { spec: found.name }.into());
    };
    let all = session.engine.images(LOCK_LABEL).await?;
    let rows: Vec<_> = components(image)
        .into_iter()
        .map(|component| SizeRow { shared_with: sharers(&component, image, &all), component })
        .collect();
    let own: u64 = rows.iter().filter(|row| row.shared_with == 0).map(|row| row.component.size).sum();
    let code = match (args.by, &args.html) {
        (SizeBy::Component, None) => None,
        _ => Some(device_code_of(session, image).await?),
    };
    let (name, size) = (found.name.as_str(), image.size);
    if let (Some(file), Some(code)) = (&args.html, &code) {
        let components: Vec<_> = rows
            .iter()
            .map(|SizeRow { component, shared_with }| {
                let (name, size, shared_with) = (component.name.as_str(), component.size, *shared_with);
                SizedComponent { name, size, shared_with }
            })
            .collect();
        let image = SizedImage { name, size, own, components: &components };
        save(settings, file, &size_page(&image, code))?;
    }
    match (args.by, &code) {
        (SizeBy::Gpu, Some(code)) if settings.output.json => {
            Printer.json(&CodeReport { schema: 1, name, size, code });
        }
        (SizeBy::Gpu, Some(code)) => {
            Printer.text(wrapped(&code_text(code, size), settings.output.width).trim_end());
        }
        _ if settings.output.json => {
            Printer.json(&SizeReport { schema: 1, name, size, components: &rows });
        }
        _ => Printer.text(&component_text(&rows, size, own)),
    }
    Ok(Exit::Done)
}

fn component_text(rows: &[SizeRow], total: u64, own: u64) -> String {
    let mut text = String::new();
    for SizeRow { component, shared_with } in rows.iter().filter(|row| row.component.size > 0) {
        let _ = write!(text, "{:<28} {:>9}", component.name, readable(component.size));
        match shared_with {
            0 => text.push('\n'),
            1 => text.push_str("  shared with 1 other image\n"),
            count => {
                let _ = writeln!(text, "  shared with {count} other images");
            }
        }
    }
    let _ = write!(text, "{:<28} {:>9}  of which its own {}", "all", readable(total), readable(own));
    text
}

/// The architectures, then the libraries with what each of them takes there.
fn code_text(code: &DeviceCode, image: u64) -> String {
    if code.libraries.is_empty() {
        return "no library of this image has device code".to_owned();
    }
    let all = code.bytes();
    let mut text = String::new();
    for (target, bytes) in &code.targets {
        let _ = writeln!(text, "{target:<28} {:>9}  {:>5} %", readable(*bytes), percent(*bytes, all));
    }
    let _ = writeln!(text, "{:<28} {:>9}  {} % of the image", "all", readable(all), percent(all, image));
    for library in &code.libraries {
        let _ = writeln!(text, "\n{}", library.path);
        let parts: Vec<_> =
            library.code.iter().map(|(target, bytes)| format!("{target} {}", readable(*bytes))).collect();
        let line = match &library.unknown {
            Some(reason) => format!("unknown: {reason}"),
            None => {
                format!("{} of {}: {}", readable(library.bytes()), readable(library.size), parts.join(", "))
            }
        };
        text.push_str(&hanging("  ", &line));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_code_is_printed_by_architecture_and_library() {
        let line = r#"{"path":"/opt/env/lib/libtorch_cuda.so","size":900000000,"code":{"sm_80":100000000,"sm_90":300000000}}"#;
        let odd = r#"{"path":"/opt/env/lib/libodd.so","size":9,"unknown":"unknown bytes at 0x10"}"#;
        let code = DeviceCode::parse(&format!("{line}\n{odd}\n{{\"done\":true,\"seconds\":1}}\n"));
        let text = code_text(&code.expect("the agent's lines"), 1_000_000_000);
        for part in [
            "sm_90                           300 MB   75.0 %\n",
            "all                             400 MB  40.0 % of the image\n",
            "\n/opt/env/lib/libtorch_cuda.so\n  400 MB of 900 MB: sm_80 100 MB, sm_90 300 MB\n",
            "\n/opt/env/lib/libodd.so\n  unknown: unknown bytes at 0x10\n",
        ] {
            assert!(text.contains(part), "`{part}` is not in {text}");
        }
        assert!(code_text(&DeviceCode::default(), 1).starts_with("no library"));
    }
}
