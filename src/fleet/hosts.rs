//! Lists of nodes as Slurm writes them: `node[3-8,11]`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The most nodes of a list, and the longest name of one.
const MOST: usize = 100_000;
const LONGEST: usize = 253;

/// Why a list of nodes cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostListError {
    /// A name with other characters than letters, digits, `.`, `_` and `-`, or one that begins like an option.
    #[error("invalid node name `{0}`")]
    Name(String),
    /// Brackets without a pair, or without a range.
    #[error("invalid node list `{0}` (expected a list such as `node[3-8,11]`)")]
    List(String),
    /// More nodes than a list may have.
    #[error("the node list has more than {MOST} nodes")]
    TooMany,
}

/// Whether a text may be the name of a node: it is passed on as an argument and shown as it is.
pub fn is_host(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !text.is_empty() && text.len() <= LONGEST && !text.starts_with('-') && text.bytes().all(is_plain)
}

/// Returns the nodes of a list, in its order, each once.
pub fn unfold(list: &str) -> Result<Vec<String>, HostListError> {
    unfold_if(list, is_host)
}

/// The same for hosts of ssh, which may have a user: `root@node[1-4]`.
pub fn unfold_logins(list: &str) -> Result<Vec<String>, HostListError> {
    unfold_if(list, |name| {
        name.split_once('@').map_or(is_host(name), |(user, host)| is_host(user) && is_host(host))
    })
}

fn unfold_if(list: &str, is_valid: fn(&str) -> bool) -> Result<Vec<String>, HostListError> {
    let mut all: Vec<String> = Vec::new();
    for part in parts(list)? {
        for name in unfold_one(part)? {
            if !is_valid(&name) {
                return Err(HostListError::Name(name.chars().take(LONGEST).collect()));
            }
            all.push(name);
            if all.len() > MOST {
                return Err(HostListError::TooMany);
            }
        }
    }
    let mut seen = std::collections::HashSet::new();
    all.retain(|name| seen.insert(name.clone()));
    Ok(all)
}

/// The parts between the commas that are outside of brackets.
fn parts(list: &str) -> Result<Vec<&str>, HostListError> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, character) in list.char_indices() {
        match character {
            '[' => depth += 1,
            ']' => depth = depth.checked_sub(1).ok_or_else(|| HostListError::List(list.to_owned()))?,
            ',' if depth == 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        if depth > 1 {
            return Err(HostListError::List(list.to_owned()));
        }
    }
    parts.push(&list[start..]);
    if depth > 0 || parts.iter().any(|part| part.trim().is_empty()) {
        return Err(HostListError::List(list.to_owned()));
    }
    Ok(parts.into_iter().map(str::trim).collect())
}

/// The names of a part without commas outside of brackets.
fn unfold_one(part: &str) -> Result<Vec<String>, HostListError> {
    let wrong = || HostListError::List(part.to_owned());
    let Some((before, rest)) = part.split_once('[') else { return Ok(vec![part.to_owned()]) };
    let (ranges, after) = rest.split_once(']').ok_or_else(wrong)?;
    let ends = unfold_one(after)?;
    let mut all = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let is_number =
            |text: &str| (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(first) || !is_number(last) {
            return Err(wrong());
        }
        let number = |text: &str| text.parse::<usize>().map_err(|_| wrong());
        let (from, to) = (number(first)?, number(last)?);
        if to < from {
            return Err(wrong());
        }
        if (to - from).saturating_mul(ends.len()) >= MOST || all.len() > MOST {
            return Err(HostListError::TooMany);
        }
        for value in from..=to {
            all.extend(ends.iter().map(|end| format!("{before}{value:0width$}{end}", width = first.len())));
        }
    }
    Ok(all)
}

/// A name without its last number, and how many digits the number has if it begins with a zero.
type Stem<'a> = (&'a str, &'a str, Option<usize>);

/// Returns nodes as one short text: `node[3-8,11]`. Those that differ in more than a number are apart by commas.
pub fn fold<'a>(nodes: impl IntoIterator<Item = &'a str>) -> String {
    let mut numbered: BTreeMap<Stem<'a>, Vec<u64>> = BTreeMap::new();
    let mut single: Vec<&str> = Vec::new();
    for node in nodes {
        match stem(node) {
            Some((stem, number)) => numbered.entry(stem).or_default().push(number),
            None => single.push(node),
        }
    }
    let mut texts: Vec<String> = numbered.into_iter().map(|(stem, numbers)| folded(stem, numbers)).collect();
    single.sort_unstable();
    single.dedup();
    texts.extend(single.into_iter().map(str::to_owned));
    texts.join(",")
}

fn stem(node: &str) -> Option<(Stem<'_>, u64)> {
    let end = node.rfind(|character: char| character.is_ascii_digit())? + 1;
    let start = node[..end]
        .rfind(|character: char| !character.is_ascii_digit())
        .map_or(0, |at| at + node[at..].chars().next().map_or(1, char::len_utf8));
    let digits = &node[start..end];
    if digits.len() > 9 {
        return None;
    }
    let width = (digits.len() > 1 && digits.starts_with('0')).then_some(digits.len());
    Some(((&node[..start], &node[end..], width), digits.parse().ok()?))
}

fn folded((before, after, width): Stem<'_>, mut numbers: Vec<u64>) -> String {
    numbers.sort_unstable();
    numbers.dedup();
    let shown = |number: u64| format!("{number:0width$}", width = width.unwrap_or(0));
    if let [one] = numbers.as_slice() {
        return format!("{before}{}{after}", shown(*one));
    }
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            // A number with more digits than the first has no leading zero in the list either.
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let mut text = format!("{before}[");
    for (at, (first, last)) in ranges.into_iter().enumerate() {
        let _ = write!(text, "{}{}", if at > 0 { "," } else { "" }, shown(first));
        if first != last {
            let _ = write!(text, "-{}", shown(last));
        }
    }
    text + "]" + after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_unfold_as_slurm_reads_them() {
        for (list, names) in [
            ("node3", "node3"),
            ("node[3-5,11]", "node3 node4 node5 node11"),
            ("n[08-11]", "n08 n09 n10 n11"),
            ("rack[1-2]n[1,3]-ib", "rack1n1-ib rack1n3-ib rack2n1-ib rack2n3-ib"),
            ("a,b[1-2], a", "a b1 b2"),
        ] {
            assert_eq!(unfold(list).expect(list).join(" "), names);
        }
    }

    #[test]
    fn lists_of_others_are_refused() {
        for list in
            ["", "a,,b", "node[", "node]", "node[]", "node[1-]", "node[5-3]", "node[[1]]", "node[a-b]"]
        {
            assert!(matches!(unfold(list), Err(HostListError::List(_))), "{list}: {:?}", unfold(list));
        }
        for name in ["-oProxyCommand=x", "a b", "a;b", "a\u{1b}c", "<b>", "$(x)", "a/b", "é"] {
            assert!(matches!(unfold(name), Err(HostListError::Name(_))), "{name}: {:?}", unfold(name));
        }
        for list in ["n[1-999999999]", "n[1-400]m[1-400]", "n[1-99999],m[1-99999]"] {
            assert_eq!(unfold(list), Err(HostListError::TooMany), "{list}");
        }
    }

    #[test]
    fn hosts_of_ssh_may_have_a_user() {
        assert_eq!(unfold_logins("root@n[1-2],m").expect("a list"), ["root@n1", "root@n2", "m"]);
        for name in ["@n1", "-l@n1", "root@-n1", "a@b@c"] {
            assert!(matches!(unfold_logins(name), Err(HostListError::Name(_))), "{name}");
        }
        assert!(matches!(unfold("root@n1"), Err(HostListError::Name(_))));
    }

    #[test]
    fn folded_list_is_short_and_unfolds_to_the_same() {
        for (names, list) in [
            ("node3 node4 node5 node11", "node[3-5,11]"),
            ("node2 node10 node1", "node[1-2,10]"),
            ("n08 n09 n10", "n[08-09],n10"),
            ("gpu-b gpu-a", "gpu-a,gpu-b"),
            ("a1-ib a2-ib", "a[1-2]-ib"),
            ("one7", "one7"),
        ] {
            let names: Vec<&str> = names.split(' ').collect();
            assert_eq!(fold(names.iter().copied()).split(',').count(), list.split(',').count(), "{list}");
            let (mut again, mut sorted) = (unfold(&fold(names.iter().copied())).expect(list), names.clone());
            again.sort();
            sorted.sort_unstable();
            assert_eq!(again, sorted);
        }
        let many: Vec<String> = (0..1_000).map(|number| format!("node{number}")).collect();
        assert_eq!(fold(many.iter().map(String::as_str)), "node[0-999]");
        assert_eq!(fold(["é9", "é10"]), "é[9-10]");
    }
}
