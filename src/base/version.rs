//! Order of Debian package versions, as `dpkg --compare-versions` has it.
//!
//! Needed to choose the newest of main, updates and security. Does not judge dependencies.

use std::cmp::Ordering;

/// Compares two versions: epoch, upstream version, revision.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (split(a), split(b));
    a.0.cmp(&b.0).then_with(|| compare_part(a.1, b.1)).then_with(|| compare_part(a.2, b.2))
}

fn split(version: &str) -> (u64, &str, &str) {
    let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
    (epoch.parse().unwrap_or(0), upstream, revision)
}

fn compare_part(mut a: &str, mut b: &str) -> Ordering {
    while !a.is_empty() || !b.is_empty() {
        let (word_a, rest_a) = split_at_first(a, |c| c.is_ascii_digit());
        let (word_b, rest_b) = split_at_first(b, |c| c.is_ascii_digit());
        let (number_a, after_a) = split_at_first(rest_a, |c| !c.is_ascii_digit());
        let (number_b, after_b) = split_at_first(rest_b, |c| !c.is_ascii_digit());
        let by_word = compare_words(word_a, word_b);
        let by_number = compare_numbers(number_a, number_b);
        match by_word.then(by_number) {
            Ordering::Equal => (a, b) = (after_a, after_b),
            decided => return decided,
        }
    }
    Ordering::Equal
}

fn split_at_first(text: &str, stop: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(stop).unwrap_or(text.len()))
}

/// `~` sorts before the end, the end before letters, letters before everything else.
fn compare_words(a: &str, b: &str) -> Ordering {
    let weight = |c: Option<u8>| match c {
        Some(b'~') => -1,
        None => 0,
        Some(c) if c.is_ascii_alphabetic() => i32::from(c),
        Some(c) => i32::from(c) + 256,
    };
    let longest = a.len().max(b.len());
    let at = |text: &str, i: usize| weight(text.as_bytes().get(i).copied());
    (0..longest).map(|i| at(a, i).cmp(&at(b, i))).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

fn compare_numbers(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_dpkg_orders_them() {
        // Each pair was confirmed with `dpkg --compare-versions`.
        for (older, newer) in [
            ("1.0", "1.0+deb12u1"),
            ("2.36-9+deb12u9", "2.36-9+deb12u14"),
            ("1.0~rc1", "1.0"),
            ("1.0~~", "1.0~"),
            ("9.1", "1:0.1"),
            ("1.0-1", "1.0-1.1"),
            ("1.0a", "1.0+"),
            ("1.9", "1.10"),
            ("5.36.0-7", "5.36.0-7+deb12u3"),
            ("0", "0a"),
        ] {
            assert_eq!(compare(older, newer), Ordering::Less, "{older} < {newer}");
            assert_eq!(compare(newer, older), Ordering::Greater, "{newer} > {older}");
        }
        assert_eq!(compare("1.01-0", "0:1.1"), Ordering::Equal);
    }
}
