//! Reports as `JUnit` XML: one suite for each image, one case for each check.

use std::fmt::Write as _;

use super::{Check, Outcome, Verdict};

/// Writes the reports as one `JUnit` file. Pure.
pub fn junit(verdicts: &[&Verdict]) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for verdict in verdicts {
        suite(&mut text, verdict);
    }
    text.push_str("</testsuites>\n");
    text
}

fn suite(text: &mut String, verdict: &Verdict) {
    let count = |outcome: Outcome| verdict.checks.iter().filter(|check| check.outcome == outcome).count();
    let name = if verdict.name.is_empty() { &verdict.image } else { &verdict.name };
    let stamp = verdict.checked.trim_end_matches('Z');
    let stamp = if stamp.is_empty() { String::new() } else { format!(" timestamp=\"{}\"", escaped(stamp)) };
    let barred = |check: &&Check| check.outcome == Outcome::Skipped && check.is_bad();
    let barred = verdict.checks.iter().filter(barred).count();
    let _ = writeln!(
        text,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.2}\"{stamp}>",
        escaped(name),
        verdict.checks.len(),
        count(Outcome::Failed) + barred,
        count(Outcome::Errored),
        count(Outcome::Skipped) - barred,
        verdict.seconds,
    );
    let mut properties = vec![("image", verdict.image.clone()), ("executed", verdict.executed.to_string())];
    properties.extend(verdict.gpus.iter().map(|gpu| ("gpu", gpu.clone())));
    text.push_str("    <properties>\n");
    for (name, value) in properties {
        let _ = writeln!(text, "      <property name=\"{name}\" value=\"{}\"/>", escaped(&value));
    }
    text.push_str("    </properties>\n");
    for check in &verdict.checks {
        case(text, check);
    }
    text.push_str("  </testsuite>\n");
}

fn case(text: &mut String, check: &Check) {
    let head = format!(
        "    <testcase classname=\"envforge.{}\" name=\"{}\"",
        escaped(&check.stage),
        escaped(&check.id)
    );
    let element = match check.outcome {
        Outcome::Passed => {
            let _ = writeln!(text, "{head}/>");
            return;
        }
        Outcome::Skipped if check.is_bad() => "failure",
        Outcome::Skipped => "skipped",
        Outcome::Failed => "failure",
        Outcome::Errored => "error",
    };
    let hint = check.hint.as_ref().map_or_else(String::new, |hint| format!("hint: {hint}"));
    let detail = escaped(&check.detail);
    let _ = writeln!(
        text,
        "{head}>\n      <{element} message=\"{detail}\">{}</{element}>\n    </testcase>",
        escaped(&hint)
    );
}

/// Escapes a text for XML; drops characters that XML 1.0 cannot contain.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(' '),
            c if c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::{VerdictStatus, tests::verdict_of};
    use super::*;

    #[test]
    fn outcomes_are_counted_and_text_is_escaped() {
        let line = |id: &str, outcome: &str, detail: &str| {
            format!(
                "{{\"id\":\"{id}\",\"stage\":\"static\",\"outcome\":\"{outcome}\",\"detail\":\"{detail}\"}}\n"
            )
        };
        let lines = line("one", "passed", "fine")
            + &line("two", "failed", "<a> & \\\"b\\\" \\u0007")
            + &line("three", "skipped", "not in the stack")
            + &line("four", "errored", "no answer");
        let verdict = verdict_of(&lines);
        assert_eq!(verdict.verdict, VerdictStatus::Failed);
        let text = junit(&[&verdict]);
        let counts = "tests=\"7\" failures=\"1\" errors=\"2\" skipped=\"1\"";
        assert!(text.contains(counts), "{text}");
        assert!(text.contains("message=\"&lt;a&gt; &amp; &quot;b&quot; \\u{7}\""), "{text}");
        assert_eq!(text.matches("<testcase").count(), 7);
        assert!(text.ends_with("</testsuites>\n"));
    }

    #[test]
    fn invalid_xml_characters_are_dropped() {
        assert_eq!(escaped("a\u{0}b\u{1b}[1mc\u{ffff}\u{1f600}"), "ab[1mc\u{1f600}");
    }
}
