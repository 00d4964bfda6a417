//! `build` without a SPEC outside a project: the products that run on this machine, to choose from.

use crate::model::request::{LockOptions, TargetOptions};
use crate::model::resolve::{resolve, target_text};
use crate::model::spec::Spec;
use crate::report::{Printer, reporter};
use crate::settings::Settings;
use crate::workflow::confirm::choose;
use crate::workflow::error::CommandError;
use crate::workflow::target::{options, target};

/// Asks on the terminal which product to build; `None`: none was chosen.
pub(crate) async fn chosen_product(
    args: &TargetOptions,
    settings: &Settings,
) -> Result<Option<String>, CommandError> {
    let matrix = &settings.matrix;
    let target = target(args, &settings.target, matrix, &*reporter(settings.output))?;
    let options = options(args, &LockOptions::default(), settings);
    let newest = |name: &String| resolve(&Spec::of(name), &target, matrix, &options).ok();
    let stacks = matrix.products_in_order().into_iter().filter_map(|product| newest(&product.name));
    let names: Vec<_> = stacks.filter(|stack| stack.source_build.is_none()).map(|stack| stack.name).collect();
    Printer.say(&format!("no envforge.toml here; these run on {}:", target_text(&target)));
    let chosen = choose("build which?", &names).await;
    Ok(chosen.map(|at| names[at].clone()))
}
