//! The byte code of the wheels of a component: from the cache, from another machine, or compiled now.

use std::sync::Arc;

use crate::assemble::AssembleError;
use crate::container_layers::byte_code::{BATCH, Interpreter, SourceFile, compile, kept, layer_key};
use crate::container_layers::keep_plan;
use crate::model::image::component::ComponentKind;
use crate::model::sha256::sha256_hex;
use crate::workflow::assemble::byte_code_layer::{batches, byte_code_layer, modules, size_of_modules};
use crate::workflow::assemble::kept_code::{KeptCode, code_of, gone};
use crate::workflow::assemble::layer::{Made, blocking};
use crate::workflow::assemble::part_timings::Part;
use crate::workflow::assemble::recipe::LayerSource;
use crate::workflow::assemble::shared_step::SharedStep;
use crate::workflow::assemble::wheels::WheelLayers;
use crate::workflow::error::CommandError;

/// How often byte code is compiled that vanishes at once.
const ATTEMPTS: usize = 3;

impl WheelLayers<'_> {
    /// The layer of byte code of these wheels, which have `below` layers, if they have modules.
    pub(super) async fn byte_code(
        &self,
        kind: ComponentKind,
        below: usize,
        wheels: &[usize],
    ) -> Result<Option<Made>, CommandError> {
        let _running = self.times.start(Part::ByteCode);
        let title = format!("byte code of {}", kind.name());
        let key = self.code_key(wheels);
        // A project's own code goes to nobody else.
        let is_shared = kind != ComponentKind::Project;
        let code = if let Ok(code) = self.kept_code(wheels, self.tools.no_cache) {
            code
        } else {
            if is_shared
                && !self.tools.no_cache
                && let Some(layers) =
                    self.finished.find(SharedStep::ByteCode { kind, below }, &key, &title).await?
            {
                let made = |layer| Made::kept(self.session, kind, &title, layer);
                return layers.first().map(made).transpose();
            }
            self.compiled(wheels).await?
        };
        let order: Vec<usize> = code.iter().map(|(at, _)| *at).collect();
        let all = code
            .into_iter()
            .map(|(at, made)| Ok((self.conflicts.left_out(&self.lock.wheels[at].name), made)));
        let Some(plan) = byte_code_layer(all)? else {
            if !is_shared {
                return Ok(None);
            }
            return self.finished.made(&key, &title, &[]).map(|()| None);
        };
        if is_shared && self.finished.collects() {
            let store = self.session.store.clone();
            let layer = blocking(move || keep_plan(&store, &plan)).await??;
            self.finished.made(&key, &title, std::slice::from_ref(&layer))?;
            return Made::kept(self.session, kind, &title, &layer).map(Some);
        }
        let (store, python) = (self.session.store.clone(), self.python.clone());
        let wheels = self.recipe_of(&order);
        let source = LayerSource::ByteCode { python: python.clone(), wheels: wheels.clone() };
        let content = Arc::new(KeptCode { store, python, wheels });
        let made = Made::of_byte_code((kind, &title), plan, (content, source)).await?;
        if is_shared {
            self.finished.compare(&key, &title, std::slice::from_ref(&made.layer.diff_id))?;
        }
        Ok(Some(made))
    }

    /// The byte code of these wheels, compiled where the cache lacks it. Another state directory of the cache may remove
    /// some of it meanwhile: that is compiled again.
    async fn compiled(&self, wheels: &[usize]) -> Result<Vec<(usize, Vec<SourceFile>)>, CommandError> {
        let (mut fresh, mut missing) = (self.tools.no_cache, Vec::new());
        for _ in 0..ATTEMPTS {
            self.compile(wheels, fresh).await?;
            fresh = false;
            match self.kept_code(wheels, fresh) {
                Ok(code) => return Ok(code),
                Err(wheels) => missing = wheels,
            }
        }
        let file = missing.first().map_or("a wheel", |at| self.lock.wheels[*at].file.as_str());
        Err(gone(&code_of(file)).into())
    }

    /// Compiles the wheels of these whose byte code the cache lacks, all of them if it is to be `fresh`; some at a time: their
    /// sources lie in memory.
    async fn compile(&self, wheels: &[usize], fresh: bool) -> Result<(), CommandError> {
        // Another build may be compiling the same wheels.
        let lock = format!("byte-code-{}", &sha256_hex(self.python.as_bytes())[..16]);
        let _alone = self.tools.store.lock_with_reason(&lock, "which compiles byte code").await?;
        let Err(missing) = self.kept_code(wheels, fresh) else { return Ok(()) };
        let (opened, minor) = (self.wheels.clone(), self.lock.stack.python.minor);
        let sizes = blocking(move || {
            let size = |at: usize| Ok::<_, AssembleError>((at, size_of_modules(&opened.open(at)?, minor)?));
            missing.into_iter().map(size).collect::<Result<Vec<_>, _>>()
        })
        .await??;
        let python = Interpreter { image: self.system.tag.name(), identity: &self.python };
        for batch in batches(&sizes, BATCH) {
            let opened = self.wheels.clone();
            let distributions = blocking(move || {
                let modules = |at: usize| modules(&opened.open(at)?, minor);
                batch.into_iter().map(modules).collect::<Result<Vec<_>, AssembleError>>()
            })
            .await??;
            compile(self.tools, python, distributions).await?;
        }
        Ok(())
    }

    /// What the layer of byte code of these wheels is a function of.
    fn code_key(&self, wheels: &[usize]) -> String {
        let of_wheel = |at: &usize| {
            let wheel = &self.lock.wheels[*at];
            (wheel.sha256.as_str(), self.conflicts.left_out(&wheel.name))
        };
        layer_key(&self.python, wheels.iter().map(of_wheel))
    }

    /// The byte code of these wheels, or those whose byte code the cache lacks: all of them if it is to be `fresh`.
    fn kept_code(&self, wheels: &[usize], fresh: bool) -> Result<Vec<(usize, Vec<SourceFile>)>, Vec<usize>> {
        let (mut code, mut missing) = (Vec::new(), Vec::new());
        for at in wheels {
            let wheel = &self.lock.wheels[*at].sha256;
            let known = if fresh { None } else { kept(self.tools.store, wheel, &self.python) };
            match known {
                Some(known) => code.push((*at, known)),
                None => missing.push(*at),
            }
        }
        if missing.is_empty() { Ok(code) } else { Err(missing) }
    }
}
