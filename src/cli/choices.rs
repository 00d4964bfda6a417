//! Options that take one of a few words: each word becomes a value of the request as it is read.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A word, what it stands for, and its help; without help the words are listed in one line.
pub(super) type Choice<T> = (&'static str, T, &'static str);

/// Parses one of these words.
pub(super) fn one_of<T, const N: usize>(choices: [Choice<T>; N]) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let named = choices.map(|(word, _, help)| match help {
        "" => PossibleValue::new(word),
        help => PossibleValue::new(word).help(help),
    });
    PossibleValuesParser::from(named).try_map(move |typed| {
        let chosen = choices.iter().find(|(word, ..)| *word == typed);
        chosen.map(|(_, value, _)| *value).ok_or("unknown word")
    })
}
