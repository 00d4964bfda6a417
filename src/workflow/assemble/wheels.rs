//! The wheels of an image as layers, each group with its byte code above it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::assemble::{
    AssembleError, Conflict, Conflicts, LayerKey, Listing, WheelGroup, digest_layers, group_wheels,
    hidden_modules,
};
use crate::container_layers::Tools;
use crate::engine::{Expected, ImageInfo};
use crate::model::counted::counted;
use crate::model::image::component::ComponentKind;
use crate::model::image::plan::LOCK_LABEL;
use crate::model::lock::{Lock, LockedWheel, WheelLayer};
use crate::model::misfit::ImageLibraries;
use crate::model::sha256::sha256_hex;
use crate::report::{Event, Reporter, in_step};
use crate::store::StoreLock;
use crate::workflow::assemble::arrivals::WheelCaches;
use crate::workflow::assemble::finished::FinishedLayers;
use crate::workflow::assemble::layer::{Made, blocking};
use crate::workflow::assemble::locked_wheels::{LayerOfWheels, LockedWheels, PackedWheels};
use crate::workflow::assemble::part_timings::{Part, PartClock};
use crate::workflow::assemble::recipe::{LayerSource, RecipeWheel};
use crate::workflow::assemble::request::Assembly;
use crate::workflow::assemble::shared_layers::claim;
use crate::workflow::assemble::system::System;
use crate::workflow::disk_space;
use crate::workflow::error::CommandError;
use crate::workflow::misfits::BuildMisfits;
use crate::workflow::session::Session;

/// Layers of an image: engines take 125, and somebody may build on top of it.
const MOST_LAYERS: usize = 100;
/// Layers above the wheels' own: byte code of each component, toolkit, distribution packages, our files, the project's.
const OTHER_LAYERS: usize = 8;

/// The layers that wheels may have above `below` layers and under `above`.
fn room(below: usize, above: usize) -> usize {
    MOST_LAYERS.saturating_sub(below + above + OTHER_LAYERS)
}

/// The wheels of an image and the layers they belong to.
pub(super) struct WheelLayers<'a> {
    pub(super) session: &'a Session<'a>,
    pub(super) finished: &'a FinishedLayers,
    pub(super) tools: &'a Tools<'a>,
    pub(super) system: &'a System<'a>,
    pub(super) lock: &'a Lock,
    pub(super) times: &'a PartClock,
    /// Everything but the wheels that the byte code depends on.
    pub(super) python: String,
    /// In the order of the lock.
    pub(super) wheels: LockedWheels,
    pub(super) conflicts: Arc<Conflicts>,
    groups: Vec<WheelGroup>,
    /// Bytes of the files of each wheel.
    unpacked: Vec<u64>,
    /// The paths of the libraries of all wheels.
    libraries: BTreeSet<String>,
    caches: WheelCaches,
    /// Held until the engine has the layers.
    _claims: Vec<StoreLock>,
}

impl<'a> WheelLayers<'a> {
    /// Makes the wheels present, compares their paths and decides which layer each belongs to.
    pub(super) async fn open(
        image: Assembly<'a>,
        tools: &'a Tools<'a>,
        (system, early): (&'a System<'a>, Option<LockedWheels>),
        caches: WheelCaches,
    ) -> Result<Self, CommandError> {
        let Assembly { session, lock, finished, times, .. } = image;
        let wheels = match early {
            Some(wheels) => wheels,
            None => LockedWheels::gather(image, system, &caches).await?,
        };
        let listing = times.start(Part::Wheels);
        let listings = wheels.listings(&caches.lists, tools.no_cache).await?;
        drop(listing);
        let conflicts = Arc::new(Conflicts::find(&listings)?);
        check_project(&listings, lock)?;
        report(&conflicts, lock, image.misfits, &*tools.reporter)?;
        let room = room(system.image.layers.len(), lock.added.run.len());
        let groups = group_wheels(&lock.wheels, &wheels.sizes(), room);
        let unpacked = listings.iter().map(Listing::unpacked).collect();
        let libraries = listings.iter().flat_map(Listing::libraries).map(str::to_owned).collect();
        let python = compiler_of(lock, &system.image);
        let made = Self {
            session,
            finished,
            tools,
            system,
            lock,
            times,
            python,
            wheels,
            conflicts,
            groups,
            unpacked,
            libraries,
            caches,
            _claims: Vec::new(),
        };
        let claims = claim(tools.store, made.large_new_layers().await?).await?;
        disk_space::check_engine(session, made.new_bytes().await?)?;
        Ok(Self { _claims: claims, ..made })
    }

    /// Reports the libraries that a wheel of the user needs and the image would lack; `of_apt`: those of the user's distribution
    /// packages.
    pub(super) async fn tell_missing_libraries(
        &self,
        misfits: Option<&BuildMisfits>,
        of_apt: BTreeSet<String>,
    ) -> Result<(), CommandError> {
        let Some(misfits) = misfits else { return Ok(()) };
        let running = self.times.start(Part::Wheels);
        let judged = self.wheels.needs(self.tools.store).await?;
        drop(running);
        let mut of_system = of_apt;
        of_system.extend(self.system.files.libraries.iter().cloned());
        let (of_wheels, of_system) = (&self.libraries, &of_system);
        let libraries = ImageLibraries { judged: &judged, of_wheels, of_system };
        misfits.tell_libraries(libraries, self.lock, &*self.tools.reporter);
        Ok(())
    }

    /// The keys of large layers that the engine lacks.
    async fn large_new_layers(&self) -> Result<BTreeSet<String>, CommandError> {
        let known = self.known_layers().await?;
        let mut keys = BTreeSet::new();
        for group in self.groups.iter().filter(|group| group.is_large()) {
            let key = self.key(group);
            if !self.caches.digests.find(&key).is_some_and(|digests| known.contains(&digests.plain.diff_id)) {
                keys.insert(key.hash());
            }
        }
        Ok(keys)
    }

    /// The diff IDs of all layers of envforge's images on the engine.
    async fn known_layers(&self) -> Result<BTreeSet<String>, CommandError> {
        let images = self.tools.engine.images(LOCK_LABEL).await?;
        Ok(images.into_iter().flat_map(|image| image.layers).collect())
    }

    /// Bytes of the layers that no image of envforge on the engine has.
    async fn new_bytes(&self) -> Result<u64, CommandError> {
        let known = self.known_layers().await?;
        let mut bytes = 0;
        for group in &self.groups {
            bytes += match self.caches.digests.find(&self.key(group)) {
                Some(digests) if known.contains(&digests.plain.diff_id) => 0,
                Some(digests) => digests.plain.size,
                None => group.wheels.iter().map(|at| self.unpacked[*at]).sum::<u64>(),
            };
        }
        Ok(bytes)
    }

    /// The layers of some components with their byte code, whose size is known only once it is made.
    pub(super) fn expected(&self, kinds: &[ComponentKind]) -> Expected {
        let groups = self.groups.iter().filter(|group| kinds.contains(&component(group.layer)));
        let (mut expected, mut with_code) = (Expected::default(), BTreeSet::new());
        for group in groups {
            expected.layers += 1;
            expected.bytes += match self.caches.digests.find(&self.key(group)) {
                Some(digests) => digests.plain.size,
                None => group.wheels.iter().map(|at| self.unpacked[*at]).sum::<u64>(),
            };
            with_code.insert(group.layer);
        }
        Expected { layers: expected.layers + with_code.len(), ..expected }
    }

    /// The layers of one component, lowest first, with its byte code on top.
    pub(super) async fn group(&self, kind: ComponentKind) -> Result<Vec<Made>, CommandError> {
        let mut made = self.without_code(kind).await?;
        made.extend(self.code(kind).await?);
        Ok(made)
    }

    /// The layers of one component without its byte code, lowest first.
    pub(super) async fn without_code(&self, kind: ComponentKind) -> Result<Vec<Made>, CommandError> {
        self.wheel_layers(kind, &self.groups_of(kind)).await
    }

    /// The layer of the byte code of one component, if its wheels have modules.
    pub(super) async fn code(&self, kind: ComponentKind) -> Result<Option<Made>, CommandError> {
        let groups = self.groups_of(kind);
        let wheels: Vec<usize> = groups.iter().flat_map(|group| group.wheels.iter().copied()).collect();
        self.byte_code(kind, groups.len(), &wheels).await
    }

    fn groups_of(&self, kind: ComponentKind) -> Vec<&WheelGroup> {
        self.groups.iter().filter(|group| component(group.layer) == kind).collect()
    }

    /// The layers of some groups: their digests from the cache, or made now on all cores.
    async fn wheel_layers(
        &self,
        kind: ComponentKind,
        groups: &[&WheelGroup],
    ) -> Result<Vec<Made>, CommandError> {
        let _running = self.times.start(Part::Wheels);
        let (mut layers, mut known) = (Vec::new(), Vec::new());
        for group in groups {
            let (wheels, members) = (self.wheels.clone(), group.wheels.clone());
            layers.push(LayerOfWheels { wheels, members, conflicts: Arc::clone(&self.conflicts) });
            known.push(if self.tools.no_cache { None } else { self.caches.digests.find(&self.key(group)) });
        }
        let unknown: Vec<LayerOfWheels> = layers
            .iter()
            .zip(&known)
            .filter(|(_, known)| known.is_none())
            .map(|(layer, _)| layer.clone())
            .collect();
        let is_step = !unknown.is_empty();
        let text = format!("compute {} of {}", counted(unknown.len(), "layer"), kind.name());
        let work = async {
            let computed = blocking(move || {
                let plans = unknown.iter().map(LayerOfWheels::plan).collect::<Result<Vec<_>, _>>()?;
                digest_layers(&plans, &|_, _| {})
            });
            Ok::<_, CommandError>(computed.await??)
        };
        let id = format!("layers:{}", kind.id());
        let computed =
            if is_step { in_step(&*self.tools.reporter, &id, text, work).await? } else { work.await? };
        let mut computed = computed.into_iter();
        let mut made = Vec::new();
        for ((group, layer), known) in groups.iter().zip(layers).zip(known) {
            let digests = if let Some(digests) = known {
                digests
            } else {
                let digests = computed.next().expect("one for each that was unknown");
                self.caches.digests.put(&self.key(group), &digests)?;
                digests
            };
            let source = LayerSource::Wheels {
                minor: self.lock.stack.python.minor,
                wheels: self.recipe_of(&group.wheels),
            };
            let packed = Arc::new(PackedWheels(layer.clone()));
            made.push(Made::of_wheels(
                (kind, &self.title(group)),
                (Arc::new(layer), packed),
                source,
                digests,
            ));
        }
        Ok(made)
    }

    fn key(&self, group: &WheelGroup) -> LayerKey<'_> {
        group.wheels.iter().fold(LayerKey::new(self.lock.stack.python.minor), |key, at| {
            let LockedWheel { name, sha256, .. } = &self.lock.wheels[*at];
            key.wheel(sha256, self.conflicts.left_out(name))
        })
    }

    /// `torch 2.8.0`, or `97 wheels`.
    fn title(&self, group: &WheelGroup) -> String {
        match group.wheels.as_slice() {
            [one] => format!("{} {}", self.lock.wheels[*one].name, self.lock.wheels[*one].version),
            many => format!("{} wheels", many.len()),
        }
    }

    /// The same wheels for a recipe.
    pub(super) fn recipe_of(&self, wheels: &[usize]) -> Vec<RecipeWheel> {
        let one = |at: &usize| {
            let locked = self.lock.wheels[*at].clone();
            let left_out = self.conflicts.left_out(&locked.name).into_iter().map(str::to_owned).collect();
            RecipeWheel { path: self.wheels.vendored(*at), left_out, locked }
        };
        wheels.iter().map(one).collect()
    }
}

/// Refuses the wheel of an installed project one of whose modules hides a package's, or is hidden by it.
fn check_project(listings: &[Listing], lock: &Lock) -> Result<(), AssembleError> {
    let Some(project) = lock.wheels.iter().find(|wheel| wheel.layer == WheelLayer::Project) else {
        return Ok(());
    };
    let reasons = hidden_modules(listings, &project.name);
    if reasons.is_empty() { Ok(()) } else { Err(AssembleError::HiddenModules { reasons }) }
}

/// Reports paths of several distributions that were not told before; one that would replace a file of CUDA or the framework is refused.
fn report(
    conflicts: &Conflicts,
    lock: &Lock,
    told: Option<&BuildMisfits>,
    reporter: &dyn Reporter,
) -> Result<(), AssembleError> {
    let layer = |name: &str| lock.wheels.iter().find(|wheel| wheel.name == name).map(|wheel| wheel.layer);
    let is_protected = |name: &str| matches!(layer(name), Some(WheelLayer::Cuda | WheelLayer::Framework));
    let is_project = |name: &str| layer(name) == Some(WheelLayer::Project);
    let line = |conflict: &Conflict| {
        let Conflict { path, loser, winner } = conflict;
        format!("`{winner}` replaces /{path} of `{loser}`")
    };
    let reasons: Vec<String> = conflicts
        .all()
        .iter()
        .filter(|conflict| is_protected(&conflict.loser) && !is_protected(&conflict.winner))
        .map(line)
        .collect();
    let of_project: Vec<String> = conflicts
        .all()
        .iter()
        .filter(|conflict| is_project(&conflict.loser) || is_project(&conflict.winner))
        .map(line)
        .collect();
    if !of_project.is_empty() {
        return Err(AssembleError::OfProject { reasons: of_project });
    }
    if !reasons.is_empty() {
        return Err(AssembleError::Replaces { reasons });
    }
    let is_told = |one: &&Conflict| told.is_some_and(|told| told.have_pair(&one.loser, &one.winner));
    let new: Vec<&Conflict> = conflicts.all().iter().filter(|one| !is_told(one)).collect();
    if let [first, rest @ ..] = new.as_slice() {
        let rest = if rest.is_empty() { String::new() } else { format!(", and {} more files", rest.len()) };
        reporter.report(Event::Note { text: format!("{}{rest}", line(first)) });
    }
    Ok(())
}

/// Everything but the wheel that its byte code depends on: each layer of the image that compiles it. A package of the distribution,
/// or a base, may bring code that Python runs or another Python.
fn compiler_of(lock: &Lock, system: &ImageInfo) -> String {
    let layers = sha256_hex(system.layers.join("\n").as_bytes());
    format!("{} {layers}", lock.stack.python)
}

fn component(layer: WheelLayer) -> ComponentKind {
    match layer {
        WheelLayer::Cuda => ComponentKind::Cuda,
        WheelLayer::Framework => ComponentKind::Framework,
        WheelLayer::Stack => ComponentKind::Stack,
        WheelLayer::User => ComponentKind::User,
        WheelLayer::Project => ComponentKind::Project,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_stays_below_the_limit_of_layers() {
        assert_eq!(room(3, 0), 89);
        assert_eq!(room(60, 5), 27);
        assert_eq!(room(110, 0), 0, "each component still gets one");
    }

    #[test]
    fn byte_code_depends_on_every_layer_of_the_image_that_compiles_it() {
        let lock = crate::model::lock::sample::lock();
        let compiler = |layers: &[&str]| {
            let layers = layers.iter().map(|&layer| layer.to_owned()).collect();
            let image = ImageInfo { layers, ..ImageInfo::default() };
            compiler_of(&lock, &image)
        };
        let own = compiler(&["base", "system"]);
        assert_eq!(own, compiler(&["base", "system"]));
        // The packages of its Python are the same: another one brought `/usr/lib/python311.zip`.
        assert_ne!(own, compiler(&["base", "system with a planted package"]));
        assert_ne!(own, compiler(&["another base", "system"]));
    }
}
