//! Every row whose wheels lie outside of the default index: which index each of its packages comes from.

use std::collections::BTreeMap;

use super::index_order::IndexOrder;
use super::request::PackageRequest;
use super::settings::IndexSettings;
use crate::model::compat;
use crate::model::compat::tables::Channel;
use crate::model::lock::{UserAdditions, sample};
use crate::model::resolve::{ResolveOptions, resolve};
use crate::model::stack::Stack;
use crate::model::target::Target;
use crate::model::versions::Machine;

/// The stacks of all rows of a framework's own channel.
fn stacks(framework: &str) -> Vec<Stack> {
    let matrix = compat::embedded();
    let rows =
        matrix.variants.iter().filter(|row| row.framework == framework && row.channel == Channel::Framework);
    let stack = |row: &crate::model::compat::tables::Variant| {
        let spec = format!("{framework}-cuda:{}-{}", row.version, row.cuda).parse().expect("a spec");
        let target = Target::any(Machine::X86_64);
        resolve(&spec, &target, matrix, &ResolveOptions::default()).expect("a row that is listed")
    };
    rows.filter(|row| row.machine == Machine::X86_64).map(stack).collect()
}

fn own_pages() -> IndexSettings {
    let page = |name: &str| {
        format!("flat+https://{name}.example.test/v{{version}}/{{cuda}}.html").parse().expect("an address")
    };
    IndexSettings {
        default: Some("https://index.example.test/simple".parse().expect("an address")),
        framework: Some("https://torch.example.test/whl/{cuda}".parse().expect("an address")),
        of_framework: ["vllm", "jax"].map(|name| (name.to_owned(), page(name))).into(),
        ..IndexSettings::default()
    }
}

/// The address and form of the only index of each package of a stack's row.
fn sources(stack: &Stack) -> BTreeMap<String, (String, bool)> {
    let (lock, added, settings) = (sample::lock(), UserAdditions::default(), own_pages());
    let request = PackageRequest::sample(&lock, stack, &added);
    let files = IndexOrder::of(&request, &settings).expect("an order").files("");
    let file = files.iter().find(|file| file.path.ends_with("/sources.toml")).expect("the row has an index");
    let table: toml::Table = std::str::from_utf8(&file.bytes).expect("text").parse().expect("valid TOML");
    let uv = &table["tool"]["uv"];
    let index = |name: &str| {
        let all = uv["index"].as_array().expect("a list");
        let found = all.iter().find(|index| index["name"].as_str() == Some(name)).expect("it is listed");
        (found["url"].as_str().expect("an address").to_owned(), found.get("format").is_some())
    };
    let packages = uv["sources"].as_table().expect("a table");
    packages
        .iter()
        .map(|(package, of)| (package.clone(), index(of["index"].as_str().expect("a name"))))
        .collect()
}

#[test]
fn every_vllm_row_of_a_release_page_takes_vllm_there_and_torch_from_pytorch() {
    let stacks = stacks("vllm");
    assert!(stacks.len() >= 10, "{}", stacks.len());
    for stack in stacks {
        let (version, cuda, of) = (&stack.version, &stack.cuda, sources(&stack));
        assert_eq!(of["vllm"], (format!("https://vllm.example.test/v{version}/{cuda}.html"), true));
        let torch: Vec<_> = of.iter().filter(|(name, _)| name.starts_with("torch")).collect();
        assert!(!torch.is_empty(), "{}", stack.name);
        for (name, index) in torch {
            assert_eq!(
                *index,
                (format!("https://torch.example.test/whl/{cuda}"), false),
                "{}: {name}",
                stack.name
            );
        }
        assert!(of.keys().all(|name| name == "vllm" || name.starts_with("torch")), "{of:?}");
    }
}

#[test]
fn every_jax_row_of_a_page_of_links_takes_jaxlib_alone_there() {
    let stacks = stacks("jax");
    assert!(stacks.len() >= 10, "{}", stacks.len());
    for stack in stacks {
        let page = format!("https://jax.example.test/v{}/{}.html", stack.version, stack.cuda);
        assert_eq!(sources(&stack), BTreeMap::from([("jaxlib".to_owned(), (page, true))]), "{}", stack.name);
    }
}
