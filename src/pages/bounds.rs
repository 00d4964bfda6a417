//! The bound of a page: texts and rows of a huge report are shortened, and the page says so.

use serde_json::Value;

/// The most bytes of a page.
pub(super) const LARGEST: usize = 500_000;

/// How much of a report a page takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// The most characters of one text.
    text: usize,
    /// The most values before lists end.
    values: usize,
}

/// Bounds to try one after the other. The last fits whatever the report holds: an escaped character has at most ten bytes.
pub(super) const BOUNDS: [Bounds; 5] = [
    Bounds { text: 4_000, values: usize::MAX },
    Bounds { text: 1_000, values: 20_000 },
    Bounds { text: 300, values: 6_000 },
    Bounds { text: 120, values: 1_500 },
    Bounds { text: 60, values: 300 },
];

impl Bounds {
    /// Shortens a report; returns whether anything was cut. Lists end early; the fields of objects stay.
    pub(super) fn shorten(self, report: &mut Value) -> bool {
        let mut left = self.values;
        self.walk(report, &mut left)
    }

    fn walk(self, value: &mut Value, left: &mut usize) -> bool {
        *left = left.saturating_sub(1);
        match value {
            Value::String(text) => match text.char_indices().nth(self.text) {
                Some((end, _)) => {
                    text.truncate(end);
                    text.push('…');
                    true
                }
                None => false,
            },
            Value::Array(all) => {
                let mut cut = false;
                let mut kept = 0;
                for one in all.iter_mut() {
                    if *left == 0 {
                        break;
                    }
                    cut |= self.walk(one, left);
                    kept += 1;
                }
                cut |= kept < all.len();
                all.truncate(kept);
                cut
            }
            Value::Object(fields) => {
                let mut cut = false;
                for field in fields.values_mut() {
                    cut |= self.walk(field, left);
                }
                cut
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_texts_and_lists_are_cut_and_fields_stay() {
        let bounds = Bounds { text: 3, values: 6 };
        let mut report = json!({ "a": "äöüß", "b": [1, 2, 3, 4, 5], "c": [{ "d": "x" }] });
        assert!(bounds.shorten(&mut report));
        assert_eq!(report, json!({ "a": "äöü…", "b": [1, 2, 3], "c": [] }));
        let mut small = json!({ "a": "abc" });
        assert!(!bounds.shorten(&mut small));
        assert_eq!(small, json!({ "a": "abc" }));
    }
}
