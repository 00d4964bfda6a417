//! Convolution as frameworks mean it (the filter is not flipped), forward and both backward passes, in double precision.

/// How the elements of images, filters and results lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Channels before rows: images NCHW, filters KCRS.
    Nchw,
    /// Channels last: images NHWC, filters KRSC.
    Nhwc,
}

impl Layout {
    /// The word of the field.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Nchw => "NCHW",
            Self::Nhwc => "NHWC",
        }
    }

    /// How far the next channel's element lies.
    fn next_channel(self, [_, _, rows, columns]: [usize; 4]) -> usize {
        match self {
            Self::Nchw => rows * columns,
            Self::Nhwc => 1,
        }
    }

    /// Where element (image, channel, row, column) of a tensor of such sizes lies.
    fn at(self, [_, channels, rows, columns]: [usize; 4], [n, c, y, x]: [usize; 4]) -> usize {
        match self {
            Self::Nchw => ((n * channels + c) * rows + y) * columns + x,
            Self::Nhwc => ((n * rows + y) * columns + x) * channels + c,
        }
    }
}

/// The sizes of a convolution; pairs are (rows, columns).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Convolution {
    pub(crate) layout: Layout,
    pub(crate) images: usize,
    pub(crate) channels: usize,
    pub(crate) size: [usize; 2],
    pub(crate) filters: usize,
    pub(crate) filter: [usize; 2],
    pub(crate) groups: usize,
    pub(crate) stride: [usize; 2],
    pub(crate) pad: [usize; 2],
    pub(crate) dilation: [usize; 2],
}

impl Convolution {
    /// One pixel, one filter of one pixel: what others are described by their differences from.
    pub(crate) const ONE: Self = Self {
        layout: Layout::Nchw,
        images: 1,
        channels: 1,
        size: [1, 1],
        filters: 1,
        filter: [1, 1],
        groups: 1,
        stride: [1, 1],
        pad: [0, 0],
        dilation: [1, 1],
    };

    /// Rows and columns of the result.
    pub(crate) fn result(&self) -> [usize; 2] {
        std::array::from_fn(|d| {
            (self.size[d] + 2 * self.pad[d] - self.dilation[d] * (self.filter[d] - 1) - 1) / self.stride[d]
                + 1
        })
    }

    /// Sizes of the images: N, C, H, W, whatever the layout.
    pub(crate) fn x(&self) -> [usize; 4] {
        [self.images, self.channels, self.size[0], self.size[1]]
    }

    /// Sizes of the filters: K, C of one group, R, S.
    pub(crate) fn w(&self) -> [usize; 4] {
        [self.filters, self.channels / self.groups, self.filter[0], self.filter[1]]
    }

    /// Sizes of the result: N, K, P, Q.
    pub(crate) fn y(&self) -> [usize; 4] {
        let [rows, columns] = self.result();
        [self.images, self.filters, rows, columns]
    }

    /// Multiplications and additions.
    #[expect(clippy::cast_precision_loss, reason = "a figure, not a count")]
    pub(crate) fn operations(&self) -> f64 {
        let [_, channels, rows, columns] = self.w();
        2.0 * elements(self.y()) as f64 * (channels * rows * columns) as f64
    }

    /// y from x and w.
    pub(crate) fn forward(&self, x: &[f64], w: &[f64]) -> Vec<f64> {
        let mut y = vec![0.0; elements(self.y())];
        self.each(|at_x, at_w, at_y| y[at_y] += x[at_x] * w[at_w]);
        y
    }

    /// The gradient of x from that of y.
    pub(crate) fn backward_data(&self, dy: &[f64], w: &[f64]) -> Vec<f64> {
        let mut dx = vec![0.0; elements(self.x())];
        self.each(|at_x, at_w, at_y| dx[at_x] += dy[at_y] * w[at_w]);
        dx
    }

    /// The gradient of w from that of y.
    pub(crate) fn backward_filter(&self, dy: &[f64], x: &[f64]) -> Vec<f64> {
        let mut dw = vec![0.0; elements(self.w())];
        self.each(|at_x, at_w, at_y| dw[at_w] += dy[at_y] * x[at_x]);
        dw
    }

    /// Calls `each` for every product that belongs to the convolution: where its x, w and y lie.
    fn each(&self, mut each: impl FnMut(usize, usize, usize)) {
        let (xs, ws, ys) = (self.x(), self.w(), self.y());
        let per_group = self.filters / self.groups;
        let (next_x, next_w) = (self.layout.next_channel(xs), self.layout.next_channel(ws));
        // Where the filter's element i over the result's element p touches the image, if inside.
        let touched = |d: usize, p: usize, i: usize| {
            (p * self.stride[d] + i * self.dilation[d])
                .checked_sub(self.pad[d])
                .filter(|at| *at < self.size[d])
        };
        for n in 0..ys[0] {
            for k in 0..ys[1] {
                let first = k / per_group * ws[1];
                for p in 0..ys[2] {
                    for q in 0..ys[3] {
                        let at_y = self.layout.at(ys, [n, k, p, q]);
                        for r in 0..ws[2] {
                            let Some(row) = touched(0, p, r) else { continue };
                            for s in 0..ws[3] {
                                let Some(column) = touched(1, q, s) else { continue };
                                let at_x = self.layout.at(xs, [n, first, row, column]);
                                let at_w = self.layout.at(ws, [k, 0, r, s]);
                                for c in 0..ws[1] {
                                    each(at_x + c * next_x, at_w + c * next_w, at_y);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// How many elements a tensor of such sizes has.
pub(crate) fn elements(sizes: [usize; 4]) -> usize {
    sizes.iter().product()
}

#[cfg(test)]
mod tests {
    use super::super::Generator;
    use super::*;

    const PLAIN: Convolution =
        Convolution { images: 2, channels: 4, size: [5, 6], filters: 6, filter: [3, 2], ..Convolution::ONE };

    fn cases() -> Vec<Convolution> {
        vec![
            PLAIN,
            Convolution { groups: 2, ..PLAIN },
            Convolution { stride: [2, 3], pad: [1, 2], ..PLAIN },
            Convolution { dilation: [2, 3], pad: [2, 1], stride: [1, 2], ..PLAIN },
            Convolution { filter: [1, 1], groups: 2, ..PLAIN },
            Convolution { layout: Layout::Nhwc, groups: 2, pad: [1, 1], dilation: [2, 1], ..PLAIN },
        ]
    }

    /// Another way: the images with zeros around them, a group's slice at a time, element by element.
    fn slow(conv: &Convolution, x: &[f64], w: &[f64]) -> Vec<f64> {
        let ([h, width], [ph, pw]) = (conv.size, conv.pad);
        let padded = [h + 2 * ph, width + 2 * pw];
        let mut big = vec![0.0; conv.images * conv.channels * padded[0] * padded[1]];
        let inside = |n: usize, c: usize, y: usize, x: usize| {
            ((n * conv.channels + c) * padded[0] + y) * padded[1] + x
        };
        for n in 0..conv.images {
            for c in 0..conv.channels {
                for row in 0..h {
                    for column in 0..width {
                        big[inside(n, c, row + ph, column + pw)] =
                            x[conv.layout.at(conv.x(), [n, c, row, column])];
                    }
                }
            }
        }
        let (ys, ws) = (conv.y(), conv.w());
        let mut y = vec![0.0; elements(ys)];
        for n in 0..ys[0] {
            for k in 0..ys[1] {
                let group = k * conv.groups / conv.filters;
                for p in 0..ys[2] {
                    for q in 0..ys[3] {
                        let mut sum = 0.0;
                        for c in 0..ws[1] {
                            for r in 0..ws[2] {
                                for s in 0..ws[3] {
                                    let row = p * conv.stride[0] + r * conv.dilation[0];
                                    let column = q * conv.stride[1] + s * conv.dilation[1];
                                    sum += big[inside(n, group * ws[1] + c, row, column)]
                                        * w[conv.layout.at(ws, [k, c, r, s])];
                                }
                            }
                        }
                        y[conv.layout.at(ys, [n, k, p, q])] = sum;
                    }
                }
            }
        }
        y
    }

    fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn forward_is_the_definition() {
        let mut generator = Generator::new(5);
        for conv in cases() {
            let (x, w) =
                (generator.integers(elements(conv.x()), 8), generator.integers(elements(conv.w()), 8));
            assert_eq!(conv.forward(&x, &w), slow(&conv, &x, &w), "{conv:?}");
        }
    }

    /// The gradient of a linear map, element by element: the map of each unit vector, times dy.
    #[test]
    fn both_backward_passes_are_the_gradients_of_forward() {
        let mut generator = Generator::new(6);
        for conv in cases() {
            let (x, w) =
                (generator.integers(elements(conv.x()), 8), generator.integers(elements(conv.w()), 8));
            let dy = generator.integers(elements(conv.y()), 8);
            let unit = |count: usize, at: usize| {
                (0..count).map(|i| f64::from(u8::from(i == at))).collect::<Vec<_>>()
            };
            let dx: Vec<_> = (0..x.len()).map(|at| dot(&dy, &slow(&conv, &unit(x.len(), at), &w))).collect();
            let dw: Vec<_> = (0..w.len()).map(|at| dot(&dy, &slow(&conv, &x, &unit(w.len(), at)))).collect();
            assert_eq!(conv.backward_data(&dy, &w), dx, "{conv:?}");
            assert_eq!(conv.backward_filter(&dy, &x), dw, "{conv:?}");
        }
    }

    #[test]
    fn the_layouts_hold_the_same_convolution() {
        let nchw = Convolution { groups: 2, pad: [1, 1], ..PLAIN };
        let nhwc = Convolution { layout: Layout::Nhwc, ..nchw };
        let turned = |sizes: [usize; 4], values: &[f64]| {
            let mut out = vec![0.0; values.len()];
            for n in 0..sizes[0] {
                for c in 0..sizes[1] {
                    for y in 0..sizes[2] {
                        for x in 0..sizes[3] {
                            let place = [n, c, y, x];
                            out[Layout::Nhwc.at(sizes, place)] = values[Layout::Nchw.at(sizes, place)];
                        }
                    }
                }
            }
            out
        };
        let mut generator = Generator::new(8);
        let (x, w) = (generator.integers(elements(nchw.x()), 8), generator.integers(elements(nchw.w()), 8));
        let y = nchw.forward(&x, &w);
        assert_eq!(nhwc.forward(&turned(nchw.x(), &x), &turned(nchw.w(), &w)), turned(nchw.y(), &y));
    }
}
