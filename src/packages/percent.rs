//! Percent-encoding in addresses.

/// Decodes percent-encoding; keeps invalid sequences unchanged.
pub(super) fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = if *first == b'%' { tail.get(..2) } else { None };
        let byte = escaped.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        out.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_encoding_is_decoded() {
        assert_eq!(decoded("a%7eb%2Bc%3a%zz%4"), "a~b+c:%zz%4");
    }
}
