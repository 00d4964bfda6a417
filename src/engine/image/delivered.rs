//! How far a load is, in layers and in bytes.

use std::sync::{Arc, Mutex, PoisonError};

use super::layered::{Expected, ImageLayer};
use crate::report::{Event, Reporter};

/// Bytes between two events of a part.
const PROGRESS: u64 = 8 << 20;

/// Counts what the engine has of an image.
pub(super) struct Delivered {
    id: String,
    /// What is to come; `None`: nothing is reported.
    expected: Option<Expected>,
    pub(super) reporter: Arc<dyn Reporter>,
    count: Mutex<Count>,
}

/// Layers and the bytes of their tars.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    /// Layers that the engine has by now.
    layers: usize,
    /// Layers that came so far.
    came: usize,
    /// Bytes of those that it had before.
    had: u64,
    /// Bytes of those that are sent, as far as they came.
    to_send: u64,
    sent: u64,
}

impl Delivered {
    pub(super) fn new(id: String, expected: Option<Expected>, reporter: Arc<dyn Reporter>) -> Self {
        Self { id, expected, reporter, count: Mutex::default() }
    }

    /// Nothing of the image is there: it is sent again.
    pub(super) fn restart(&self) {
        self.change(|count| *count = Count::default());
    }

    /// The engine has a layer.
    pub(super) fn had(&self, layer: &ImageLayer) {
        self.change(|count| {
            count.layers += 1;
            count.came += 1;
            count.had += layer.size;
        });
    }

    /// Layers are about to be sent.
    pub(super) fn begins(&self, layers: &[ImageLayer]) {
        self.change(|count| {
            count.came += layers.len();
            count.to_send += plain_size(layers);
        });
    }

    /// The engine has applied layers.
    pub(super) fn applied(&self, layers: usize) {
        self.change(|count| count.layers += layers);
    }

    fn change(&self, change: impl FnOnce(&mut Count)) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut count);
        let Some(Expected { layers, bytes }) = self.expected else { return };
        self.reporter.report(Event::StepParts {
            id: self.id.clone(),
            done: count.layers,
            total: layers.max(count.came),
            done_bytes: count.sent,
            total_bytes: bytes.saturating_sub(count.had).max(count.to_send),
            left_s: None,
        });
    }
}

/// The bytes of one part on their way. Compressed ones count as the share of the tars that they are.
pub(super) struct PartBytes {
    delivered: Arc<Delivered>,
    blobs: u64,
    plain: u64,
    written: u64,
    counted: u64,
}

impl PartBytes {
    pub(super) fn new(delivered: Arc<Delivered>, layers: &[ImageLayer]) -> Self {
        let blobs = layers.iter().map(|layer| layer.blob().size).sum();
        Self { delivered, blobs, plain: plain_size(layers), written: 0, counted: 0 }
    }

    /// Adds bytes; what surrounds the content does not count.
    pub(super) fn add(&mut self, bytes: u64) {
        self.written = (self.written + bytes).min(self.blobs);
        let share = u128::from(self.plain) * u128::from(self.written) / u128::from(self.blobs.max(1));
        let done = u64::try_from(share).unwrap_or(self.plain);
        let new = done - self.counted;
        if new >= PROGRESS || (self.written == self.blobs && new > 0) {
            self.counted = done;
            self.delivered.change(|count| count.sent += new);
        }
    }
}

/// Bytes of the tars of layers.
fn plain_size(layers: &[ImageLayer]) -> u64 {
    layers.iter().map(|layer| layer.size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::image::layered::{LayerContent, PackedLayer};
    use crate::report::Recorder;

    struct Nothing;

    impl LayerContent for Nothing {
        fn write_to(&self, _: &mut dyn std::io::Write) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn layer(size: u64, packed: Option<u64>) -> ImageLayer {
        let packed = packed.map(|size| PackedLayer {
            digest: "sha256:1".to_owned(),
            size,
            content: Arc::new(Nothing),
        });
        ImageLayer {
            title: "torch".to_owned(),
            diff_id: "sha256:0".to_owned(),
            size,
            content: Some(Arc::new(Nothing)),
            packed,
        }
    }

    /// The last event as layers and bytes, each with its total.
    fn last(seen: &Recorder) -> ((usize, usize), (u64, u64)) {
        match seen.take().pop() {
            Some(Event::StepParts { done, total, done_bytes, total_bytes, .. }) => {
                ((done, total), (done_bytes, total_bytes))
            }
            other => panic!("{other:?}"),
        }
    }

    fn of(expected: Option<Expected>) -> (Arc<Delivered>, Arc<Recorder>) {
        let seen = Arc::new(Recorder::default());
        let delivered = Delivered::new("load:a".to_owned(), expected, Arc::clone(&seen) as Arc<dyn Reporter>);
        (Arc::new(delivered), seen)
    }

    #[test]
    fn bytes_of_a_layer_that_the_engine_had_are_not_to_be_sent() {
        let (delivered, seen) = of(Some(Expected { layers: 3, bytes: 100 << 20 }));
        delivered.had(&layer(40 << 20, None));
        assert_eq!(last(&seen), ((1, 3), (0, 60 << 20)));
        let part = [layer(50 << 20, Some(5 << 20))];
        delivered.begins(&part);
        let mut bytes = PartBytes::new(Arc::clone(&delivered), &part);
        bytes.add(1 << 20);
        assert_eq!(last(&seen), ((1, 3), (10 << 20, 60 << 20)), "a fifth of the compressed layer");
        bytes.add(5 << 20);
        delivered.applied(1);
        assert_eq!(last(&seen), ((2, 3), (50 << 20, 60 << 20)));
    }

    #[test]
    fn totals_grow_with_layers_that_were_not_expected() {
        let (delivered, seen) = of(Some(Expected { layers: 1, bytes: 10 }));
        let part = [layer(8, None), layer(8, None)];
        delivered.begins(&part);
        assert_eq!(last(&seen), ((0, 2), (0, 16)));
        delivered.restart();
        assert_eq!(last(&seen), ((0, 1), (0, 10)));
    }

    #[test]
    fn load_of_unknown_size_reports_no_parts() {
        let (delivered, seen) = of(None);
        delivered.had(&layer(1, None));
        assert!(seen.take().is_empty());
    }
}
