//! Text in columns.

use std::fmt::Write as _;

/// Cells in columns; the last of a row is as long as it is, and an empty column is left out.
pub(super) fn aligned<R: AsRef<[String]>>(rows: &[R]) -> String {
    let columns = rows.iter().map(|row| row.as_ref().len()).max().unwrap_or_default();
    let width = |column: usize| {
        rows.iter().skip(1).filter_map(|row| row.as_ref().get(column)).map(|cell| cell.chars().count()).max()
    };
    let kept: Vec<(usize, usize)> = (0..columns)
        .filter_map(|column| {
            let head =
                rows.first().and_then(|row| row.as_ref().get(column)).map_or(0, |cell| cell.chars().count());
            width(column).filter(|width| *width > 0).map(|width| (column, width.max(head)))
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, width) in &kept {
            let cell = row.as_ref().get(*column).map_or("", String::as_str);
            let _ = write!(line, "{cell:width$}  ");
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}
