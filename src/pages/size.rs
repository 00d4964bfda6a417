//! The size of an image: treemaps of its components and of its device code, and the same as tables.

use serde::Serialize;

use super::document::Document;
use super::treemap::{Tile, squarified};
use crate::model::byte_size::{percent, readable};
use crate::model::image::device_code::{CodeTarget, DeviceCode};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 380.0;
/// The style has a color for each kind of component, and the base.
const LAST_COLOR: usize = 13;

/// An image with its components.
#[derive(Debug, Clone, Copy)]
pub struct SizedImage<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its size in bytes.
    pub size: u64,
    /// The bytes that no other image has.
    pub own: u64,
    /// Its components.
    pub components: &'a [SizedComponent<'a>],
}

/// One component of an image.
#[derive(Debug, Clone, Copy)]
pub struct SizedComponent<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its size in bytes.
    pub size: u64,
    /// How many other images have it.
    pub shared_with: usize,
}

#[derive(Serialize)]
struct SizePage<'a> {
    name: &'a str,
    total: String,
    own: String,
    width: f64,
    height: f64,
    last_color: usize,
    components: Treemap<'a>,
    rows: Vec<Row<'a>>,
    code: Treemap<'a>,
    code_total: String,
    code_percent: String,
    targets: Vec<String>,
    libraries: Vec<LibraryRow<'a>>,
}

#[derive(Serialize)]
struct Treemap<'a> {
    label: &'a str,
    /// The kinds of its tiles, each with the color of its place in the list.
    kinds: Vec<&'a str>,
    tiles: Vec<NamedTile>,
}

#[derive(Serialize)]
struct NamedTile {
    name: String,
    color: usize,
    size: String,
    percent: String,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    /// Whether its name fits in it.
    named: bool,
    /// Its number in the list below, if the name does not fit.
    number: Option<usize>,
    /// Whether the number fits in it.
    numbered: bool,
}

/// A part of a picture.
struct Part<'a> {
    name: String,
    /// What its color stands for.
    kind: &'a str,
    size: u64,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    size: u64,
    readable: String,
    percent: String,
    shared_with: usize,
}

#[derive(Serialize)]
struct LibraryRow<'a> {
    path: &'a str,
    readable: String,
    /// By the targets of the page; nothing where it has no code.
    code: Vec<Option<String>>,
    unknown: Option<&'a str>,
}

/// Returns the page of an image.
pub fn size_page(image: &SizedImage<'_>, code: &DeviceCode) -> String {
    let SizedImage { name, size, own, components } = *image;
    let sum: u64 = components.iter().map(|one| one.size).sum();
    let rows = components.iter().map(|one| {
        let SizedComponent { name, size, shared_with } = *one;
        Row { name, size, readable: readable(size), percent: percent(size, sum), shared_with }
    });
    let libraries = code.libraries.iter().map(|library| LibraryRow {
        path: &library.path,
        readable: readable(library.bytes()),
        code: code
            .targets
            .keys()
            .map(|target| library.code.get(target).map(|bytes| readable(*bytes)))
            .collect(),
        unknown: library.unknown.as_deref(),
    });
    let title = format!("{name}: size by component and GPU");
    let document =
        Document { template: "size.html.j2", title: &title, source: "envforge size --json (--by gpu)" };
    let parts =
        components.iter().map(|one| Part { name: one.name.to_owned(), kind: one.name, size: one.size });
    let target = |(target, bytes): (&CodeTarget, &u64)| {
        let kind = match target {
            CodeTarget::Machine(_) => "machine code",
            CodeTarget::Ptx(_) => "PTX",
        };
        Part { name: target.to_string(), kind, size: *bytes }
    };
    document.write(&SizePage {
        name,
        total: readable(size),
        own: readable(own),
        width: WIDTH,
        height: HEIGHT,
        last_color: LAST_COLOR,
        components: Treemap::of("components", parts.collect()),
        rows: rows.collect(),
        code: Treemap::of("GPU architectures", code.targets.iter().map(target).collect()),
        code_total: readable(code.bytes()),
        code_percent: percent(code.bytes(), size),
        targets: code.targets.keys().map(ToString::to_string).collect(),
        libraries: libraries.collect(),
    })
}

impl<'a> Treemap<'a> {
    /// A tile for each part with bytes, largest first. Those that are too small for their names have numbers.
    fn of(label: &'a str, mut parts: Vec<Part<'a>>) -> Self {
        let sum: u64 = parts.iter().fold(0, |sum, part| sum.saturating_add(part.size));
        parts.retain(|part| part.size > 0);
        let mut kinds: Vec<&str> = Vec::new();
        for part in &parts {
            if !kinds.contains(&part.kind) {
                kinds.push(part.kind);
            }
        }
        parts.sort_by(|one, other| (other.size, &one.name).cmp(&(one.size, &other.name)));
        #[expect(clippy::cast_precision_loss, reason = "for a picture")]
        let sizes: Vec<_> = parts.iter().map(|part| part.size as f64).collect();
        let free = Tile { x: 0.0, y: 0.0, width: WIDTH, height: HEIGHT };
        let mut tiles = Vec::with_capacity(parts.len());
        let mut numbers = 1..;
        for (part, tile) in parts.into_iter().zip(squarified(&sizes, free)) {
            let named = fits(&part.name, tile);
            let number = if named { None } else { numbers.next() };
            tiles.push(NamedTile {
                color: kinds.iter().position(|kind| *kind == part.kind).unwrap_or_default().min(LAST_COLOR),
                named,
                number,
                numbered: number.is_some_and(|number| fits(&number.to_string(), tile)),
                size: readable(part.size),
                percent: percent(part.size, sum),
                name: part.name,
                x: rounded(tile.x),
                y: rounded(tile.y),
                width: rounded(tile.width),
                height: rounded(tile.height),
            });
        }
        Self { label, kinds, tiles }
    }
}

/// Whether a tile has room for a text with its margins.
fn fits(text: &str, tile: Tile) -> bool {
    let letters = f64::from(u32::try_from(text.chars().count()).unwrap_or(u32::MAX));
    tile.height > 26.0 && tile.width > 16.0 + 7.6 * letters
}

/// Tenths of a pixel: enough, and the same digits everywhere.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tile_has_its_name_or_a_number_and_the_color_of_its_kind() {
        let part = |kind, name: &str, size| Part { name: name.to_owned(), kind, size };
        let parts = vec![
            part("base", "base", 117_000_000),
            part("CUDA libraries", "cuBLAS", 900_000_000),
            part("framework", "torch", 2_400_000_000),
            part("CUDA libraries", "cuDNN", 700_000_000),
            part("added Python packages", "einops", 60_000),
            part("working folder", "working folder", 0),
            part("envforge's own", "envforge's own", 2_000_000),
        ];
        let map = Treemap::of("components", parts);
        assert_eq!(
            map.kinds,
            ["base", "CUDA libraries", "framework", "added Python packages", "envforge's own"]
        );
        let said: Vec<_> =
            map.tiles.iter().map(|tile| (tile.name.as_str(), tile.color, tile.number)).collect();
        let expected = [
            ("torch", 2, None),
            ("cuBLAS", 1, None),
            ("cuDNN", 1, None),
            ("base", 0, None),
            ("envforge's own", 4, Some(1)),
            ("einops", 3, Some(2)),
        ];
        assert_eq!(said, expected);
        assert!(map.tiles.iter().all(|tile| tile.named != tile.number.is_some()));
        assert!(!map.tiles[5].numbered, "a tenth of a pixel has no room for a number");
    }

    #[test]
    fn colors_of_the_style_are_enough_for_every_kind() {
        let style = include_str!("../../templates/pages/style.css");
        for color in 0..=LAST_COLOR {
            assert!(style.contains(&format!(".c{color} {{ --tile: ")), "{color}");
        }
        let kinds: Vec<String> = (0..LAST_COLOR + 3).map(|number| number.to_string()).collect();
        let parts = kinds.iter().map(|kind| Part { name: kind.clone(), kind, size: 1 }).collect();
        assert!(Treemap::of("components", parts).tiles.iter().all(|tile| tile.color <= LAST_COLOR));
    }
}
