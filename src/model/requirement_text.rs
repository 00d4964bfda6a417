//! Requirements of Python packages as others write them, before they are parsed.

/// The longest that is read. Those of people and tools have some hundred characters.
const LONGEST: usize = 4096;
/// The parser calls itself for each parenthesis of a marker, until it has no stack left.
const DEEPEST: usize = 64;
/// Extras and `in` of a marker: each is a variable of its own, and the time and memory of a marker double with every two of them
/// (measured with uv, which has the same parser: 0.4 s more for 32, 1.1 s for 36).
const MOST_VARIABLES: usize = 24;

/// Why a requirement is not parsed; `None`: it is as short and as simple as people and tools write them.
pub(crate) fn beyond_bounds(text: &str) -> Option<String> {
    let variables = text.matches("extra").count() + text.matches(" in ").count();
    let why = if text.matches('(').count() > DEEPEST {
        format!("more than {DEEPEST} parentheses")
    } else if text.len() > LONGEST {
        format!("longer than {LONGEST} characters")
    } else if variables > MOST_VARIABLES {
        format!("more than {MOST_VARIABLES} times `extra` or `in`")
    } else {
        return None;
    };
    Some(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirement_that_would_exhaust_the_parser_is_beyond_the_bounds() {
        let nested = |depth: usize| format!("a; {}os_name == 'x'{}", "(".repeat(depth), ")".repeat(depth));
        let pairs = |count: usize| {
            let all: Vec<_> = (0..count).map(|n| format!("extra == 'a{n}' and extra == 'b{n}'")).collect();
            format!("a; {}", all.join(" or "))
        };
        let within = |count: usize| format!("a; {}", vec!["'x' in os_name"; count].join(" or "));
        for text in [nested(64), pairs(12), within(24), "a".repeat(4096)] {
            assert_eq!(beyond_bounds(&text), None);
        }
        for (text, says) in [
            (nested(65), "64 parentheses"),
            (pairs(13), "24 times `extra`"),
            (within(25), "24 times `extra` or `in`"),
            ("a".repeat(4097), "longer than 4096 characters"),
        ] {
            assert!(beyond_bounds(&text).is_some_and(|why| why.contains(says)), "{says}");
        }
    }
}
