//! The page of the properties of trust, from the table of the hostile set.

use std::collections::BTreeMap;

use crate::model::markdown::MarkdownPage;

/// The set with its table.
const TABLE: &str = include_str!("../../../tests/hostile/README.md");

/// Rows of a property: the removed defence, and the cases that failed without it.
type Rows<'a> = BTreeMap<u32, Vec<(&'a str, &'a str)>>;

fn properties() -> impl Iterator<Item = (u32, &'static str)> {
    let line = |line: &'static str| {
        let (number, text) = line.split_once(". ")?;
        Some((number.parse().ok()?, text))
    };
    let (_, rest) = TABLE.split_once("## The properties\n").expect("the list is there");
    let (list, _) = rest.split_once("\n## ").expect("the table follows");
    list.lines().filter_map(line)
}

fn rows() -> Rows<'static> {
    let (table, _) = TABLE.split_once("\n## Not seen to fail").expect("two parts");
    let mut rows = Rows::new();
    for line in table.lines() {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        if let [_, property, defence, cases, _] = cells[..]
            && let Ok(property) = property.parse()
        {
            rows.entry(property).or_default().push((defence, cases));
        }
    }
    rows
}

pub(super) fn page() -> String {
    let mut page = MarkdownPage::new("Properties of trust");
    page.paragraph(
        "Each property of [Security](../explanation/security.md) with its attacks. For each row the defence was removed once, and the \
         cases and tests in it failed; with the defence they pass. `wheels/traversal` is a folder of `tests/hostile`, `FILE::NAME` a test. \
         A property without a table is held by tests that were not broken on purpose.",
    );
    let rows = rows();
    for (number, text) in properties() {
        page.heading(2, &format!("{number}. {text}"));
        let of_property = rows.get(&number).into_iter().flatten();
        let of_property: Vec<Vec<String>> =
            of_property.map(|(defence, cases)| vec![(*defence).to_owned(), (*cases).to_owned()]).collect();
        if !of_property.is_empty() {
            page.table(&["removed defence", "failed without it"], of_property);
        }
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_of_a_property_in_the_list() {
        let numbers: Vec<_> = properties().map(|(number, _)| number).collect();
        assert_eq!(numbers, (1..=35).collect::<Vec<_>>());
        let rows = rows();
        assert!(rows.len() > 30 && rows.keys().all(|number| numbers.contains(number)), "{:?}", rows.keys());
    }
}
