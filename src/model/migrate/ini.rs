//! Files of sections, keys and values, as setup.cfg is one.

/// A key with its lines and the number of the first, from 1.
pub(super) struct Entry {
    pub section: String,
    pub key: String,
    pub values: Vec<(usize, String)>,
}

/// Reads the entries; lines that begin with a space go on with the value before.
pub(super) fn entries(text: &str) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    let mut section = String::new();
    for (at, line) in text.lines().enumerate() {
        let plain = line.split(" #").next().unwrap_or_default().trim_end();
        if plain.trim().is_empty() || plain.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = plain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            name.trim().clone_into(&mut section);
        } else if plain.starts_with(char::is_whitespace) {
            if let Some(entry) = found.last_mut().filter(|entry| entry.section == section) {
                entry.values.push((at + 1, plain.trim().to_owned()));
            }
        } else if let Some((key, value)) = plain.split_once(['=', ':']) {
            let values = Some((at + 1, value.trim().to_owned())).filter(|(_, value)| !value.is_empty());
            let key = key.trim().to_ascii_lowercase();
            found.push(Entry { section: section.clone(), key, values: values.into_iter().collect() });
        }
    }
    found
}
