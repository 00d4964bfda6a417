//! Rectangles whose areas are the sizes of things, as square as possible (Bruls, Huizing, van Wijk: squarified treemaps).

/// A rectangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tile {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Returns a rectangle for each size inside `free`, in the order given; sizes must descend. One of size 0 has no area.
pub(super) fn squarified(sizes: &[f64], mut free: Tile) -> Vec<Tile> {
    let total: f64 = sizes.iter().sum();
    if total <= 0.0 {
        return vec![Tile { width: 0.0, height: 0.0, ..free }; sizes.len()];
    }
    let scale = free.width * free.height / total;
    let areas: Vec<_> = sizes.iter().map(|size| size * scale).collect();
    let mut tiles = Vec::with_capacity(areas.len());
    let mut rest = areas.as_slice();
    while !rest.is_empty() {
        let side = free.width.min(free.height);
        let count = (1..=rest.len())
            .take_while(|count| {
                *count == 1 || worst(&rest[..*count], side) <= worst(&rest[..count - 1], side)
            })
            .last()
            .unwrap_or(1);
        let (row, left) = rest.split_at(count);
        free = lay(row, free, &mut tiles);
        rest = left;
    }
    tiles
}

/// Returns the worst ratio of sides in a row along a side of that length.
fn worst(row: &[f64], side: f64) -> f64 {
    let area: f64 = row.iter().sum();
    let thickness = area / side;
    let ratio = |one: &f64| {
        let length = one / thickness;
        (length / thickness).max(thickness / length)
    };
    row.iter().map(ratio).fold(0.0, f64::max)
}

/// Lays a row along the shorter side; returns what is free after it.
fn lay(row: &[f64], free: Tile, tiles: &mut Vec<Tile>) -> Tile {
    let area: f64 = row.iter().sum();
    let upright = free.width >= free.height;
    let side = if upright { free.height } else { free.width };
    let thickness = if side > 0.0 { area / side } else { 0.0 };
    let mut at = 0.0;
    for one in row {
        let length = if thickness > 0.0 { one / thickness } else { 0.0 };
        tiles.push(if upright {
            Tile { x: free.x, y: free.y + at, width: thickness, height: length }
        } else {
            Tile { x: free.x + at, y: free.y, width: length, height: thickness }
        });
        at += length;
    }
    if upright {
        Tile { x: free.x + thickness, width: free.width - thickness, ..free }
    } else {
        Tile { y: free.y + thickness, height: free.height - thickness, ..free }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fill_the_area_by_size_and_do_not_overlap() {
        let sizes = [6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0, 0.0];
        let tiles = squarified(&sizes, Tile { x: 0.0, y: 0.0, width: 600.0, height: 400.0 });
        assert_eq!(tiles.len(), sizes.len());
        for (tile, size) in tiles.iter().zip(sizes) {
            assert!((tile.width * tile.height - size * 10_000.0).abs() < 0.01, "{tile:?} for {size}");
            assert!(
                tile.x > -0.01 && tile.x + tile.width < 600.01 && tile.y + tile.height < 400.01,
                "{tile:?}"
            );
        }
        for (at, one) in tiles.iter().enumerate() {
            for other in tiles.iter().skip(at + 1).filter(|other| other.width * other.height > 0.0) {
                let apart = one.x + one.width < other.x + 0.01
                    || other.x + other.width < one.x + 0.01
                    || one.y + one.height < other.y + 0.01
                    || other.y + other.height < one.y + 0.01;
                assert!(apart, "{one:?} {other:?}");
            }
        }
        // The example of the paper: the first row holds the two largest.
        assert!((tiles[0].width - 300.0).abs() < 0.01 && (tiles[1].height - 200.0).abs() < 0.01, "{tiles:?}");
    }

    #[test]
    fn nothing_has_no_area() {
        let none = Tile { x: 0.0, y: 0.0, width: 10.0, height: 10.0 };
        assert!(squarified(&[0.0, 0.0], none).iter().all(|tile| tile.width == 0.0));
        assert!(squarified(&[], none).is_empty());
    }
}
