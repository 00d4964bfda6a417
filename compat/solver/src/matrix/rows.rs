//! The common interface of all rows: label, file and source.
//!
//! Owns the labels of rows in messages. Must not check rows: that is `lint`.

use super::coupled::{CoupledPackage, CoupledRelease, SourceRecipe, WheelPlace};
use super::needs::{DistributionLibrary, FrameworkRequirement, SameModule, WheelLibraries};
use super::tables::{
    Base, Capability, CatalogueImage, Chip, Companion, Compiler, ComponentWheel, Components, CondaName,
    CudnnBuild, DeveloperStack, DeviceCodeSize, DriverBranch, ForwardCompat, Gpu, ImpliedFramework,
    JitCompiler, KnownVersion, Matrix, MinorFloor, NcclBuild, NumpyLimit, NvccPackage, NvccRepository,
    NvccVendor, NvccWheels, Product, Profilers, PtxasWheels, RowlessWheels, SourceBuild, SourceFloor,
    Toolkit, UnmeasuredLibrary, Variant,
};

/// A row of the matrix, whatever its table.
pub trait Row {
    /// Returns the label, unique within its table: `variant 2.8.0 cu128 x86_64`.
    fn label(&self) -> String;
    /// Returns the file of `compat/` that contains it: `pytorch.toml`.
    fn file(&self) -> String;
    /// Returns the source of the row.
    fn source(&self) -> &str;
    #[doc(hidden)]
    /// Returns the source for replacement by its full text.
    fn source_mut(&mut self) -> &mut String;
    /// Returns every field as TOML.
    fn fields(&self) -> String;
    /// Returns file and label: `pytorch.toml: variant 2.8.0 cu128 x86_64`.
    fn reference(&self) -> String {
        format!("{}: {}", self.file(), self.label())
    }
}

macro_rules! row {
    ($type:ty, $file:expr, $label:expr) => {
        impl Row for $type {
            fn label(&self) -> String {
                let label: fn(&$type) -> String = $label;
                label(self)
            }
            fn file(&self) -> String {
                let file: fn(&$type) -> String = $file;
                file(self)
            }
            fn source(&self) -> &str {
                &self.source
            }
            fn fields(&self) -> String {
                toml::to_string_pretty(self).expect("rows hold texts, numbers and lists")
            }
            fn source_mut(&mut self) -> &mut String {
                &mut self.source
            }
        }
    };
}

row!(DriverBranch, |_| "driver.toml".into(), |row| format!("branch {}", row.branch));
row!(MinorFloor, |_| "driver.toml".into(), |row| format!("minor_floor {}", row.cuda_major));
row!(ForwardCompat, |_| "driver.toml".into(), |row| format!("forward_compat {}", row.cuda));
row!(Toolkit, |_| "driver.toml".into(), |row| format!("toolkit {}", row.cuda));
row!(Compiler, |_| "arch.toml".into(), |row| format!("compiler {}", row.cuda));
row!(Capability, |_| "arch.toml".into(), |row| format!("capability {}", row.cc.dotted()));
row!(Gpu, |_| "gpu.toml".into(), |row| format!("gpu `{}`", row.name));
row!(Chip, |_| "gpu.toml".into(), |row| format!("chip {}", row.name));
row!(CudnnBuild, |_| "cudnn.toml".into(), |row| {
    format!("cudnn {} for CUDA {} {}", row.version, row.cuda_major, row.machine)
});
row!(NcclBuild, |_| "nccl.toml".into(), |row| {
    format!("nccl {} {} {}", row.package, row.version, row.machine)
});
row!(UnmeasuredLibrary, |row| format!("{}.toml", row.library), |row| {
    format!("unmeasured {} {} for CUDA {} {}", row.library, row.version, row.cuda_major, row.machine)
});
row!(Components, |_| "components.toml".into(), |row| format!("components {}", row.cuda));
row!(ComponentWheel, |_| "components.toml".into(), |row| format!("component {}", row.part));
row!(NvccPackage, |_| "nvcc.toml".into(), |row| format!("nvcc_package {}", row.base));
row!(NvccWheels, |_| "nvcc.toml".into(), |row| format!("nvcc_wheels {}", row.cuda_major));
row!(PtxasWheels, |_| "nvcc.toml".into(), |row| format!("ptxas_wheels {}", row.cuda_major));
row!(NvccRepository, |_| "nvcc.toml".into(), |row| format!("nvcc_repository {}", row.base));
row!(NvccVendor, |_| "nvcc.toml".into(), |row| format!("nvcc_vendor {}", row.first));
row!(Profilers, |_| "nvcc.toml".into(), |row| format!("profilers {}", row.cuda));
row!(Variant, |row| format!("{}.toml", row.framework), |row| {
    format!("variant {} {} {} {}", row.framework, row.version, row.cuda, row.machine)
});
row!(SourceFloor, |row| format!("{}.toml", row.framework), |row| {
    format!("source_floor {} {}", row.framework, row.line)
});
row!(DeviceCodeSize, |row| format!("{}.toml", row.framework), |row| {
    format!("device_code {} {} {} {}", row.framework, row.version, row.cuda, row.machine)
});
row!(SourceBuild, |row| format!("{}.toml", row.framework), |row| {
    format!("source_build {} {} {} {}", row.framework, row.version, row.cuda, row.machine)
});
row!(KnownVersion, |row| format!("{}.toml", row.framework), |row| {
    let last = row.last.as_ref().map(|last| format!(" to {last}")).unwrap_or_default();
    format!("known_version {} {}{last}", row.framework, row.version)
});
row!(RowlessWheels, |row| format!("{}.toml", row.framework), |row| {
    let last = row.last.as_ref().map(|last| format!(" to {last}")).unwrap_or_default();
    format!("rowless_wheels {} {}{last} {}", row.package, row.version, row.machine)
});
row!(Companion, |_| "pytorch.toml".into(), |row| format!("companion {} {}", row.package, row.version));
row!(NumpyLimit, |row| format!("{}.toml", row.framework), |row| {
    let end = |version: Option<&_>| version.map_or_else(|| "..".to_owned(), ToString::to_string);
    format!("numpy_limit {} {} to {}", row.framework, end(row.first.as_ref()), end(row.last.as_ref()))
});
row!(FrameworkRequirement, |row| format!("{}.toml", row.framework), |row| {
    let one = row.requires.first().map(String::as_str).unwrap_or_default();
    let python = row.python_from.map(|python| format!(" Python {python}")).unwrap_or_default();
    format!("requirement {} {} to {} {one}{python}", row.framework, row.first, row.last)
});
row!(CoupledPackage, |_| "companions.toml".into(), |row| format!("coupled_package {}", row.package));
row!(CoupledRelease, |_| "companions.toml".into(), |row| {
    let versions = row.versions.first().map(ToString::to_string).unwrap_or_default();
    let place = match row.place {
        WheelPlace::Default => "default",
        WheelPlace::Page => "page",
        WheelPlace::Sdist => "sdist",
    };
    let torch = match row.loads.as_slice() {
        [only] if row.place == WheelPlace::Page => format!(" torch {only}"),
        _ => String::new(),
    };
    format!("coupled_release {} {versions} {place}{torch}", row.package)
});
row!(SourceRecipe, |_| "recipes.toml".into(), |row| {
    let versions: Vec<_> = row.versions.iter().map(ToString::to_string).collect();
    format!("source_recipe {} {}", row.package, versions.join(", "))
});
row!(SameModule, |_| "companions.toml".into(), |row| format!("same_module {}", row.module));
row!(WheelLibraries, |_| "libraries.toml".into(), |row| format!("wheel_libraries {}", row.package));
row!(DistributionLibrary, |_| "libraries.toml".into(), |row| {
    format!("distribution_library {}", row.library)
});
row!(JitCompiler, |row| format!("{}.toml", row.framework.as_deref().unwrap_or("jit")), |row| {
    let name = row.framework.as_deref().or(row.triton.as_deref().map(|_| "triton"));
    let from = row.triton.clone().or(row.first.as_ref().map(ToString::to_string));
    let major = row.cuda_major.map_or_else(String::new, |major| format!(" cu{major}"));
    format!("jit {} {}{major}", name.unwrap_or("any"), from.unwrap_or_default())
});
row!(CondaName, |_| "names.toml".into(), |row| format!("conda {}", row.name));
row!(CatalogueImage, |_| "names.toml".into(), |row| format!("catalogue {} {}", row.image, row.release));
row!(ImpliedFramework, |_| "names.toml".into(), |row| format!("implies {}", row.package));
row!(Base, |_| "bases.toml".into(), |row| format!("base {}", row.name));
row!(DeveloperStack, |_| "python_stack.toml".into(), |row| {
    format!("stack {} numpy {}", row.python, row.numpy_line)
});
row!(
    Product,
    |row| row.package.as_ref().map_or("components.toml".into(), |_| format!("{}.toml", row.framework)),
    |row| { format!("product {}", row.name) }
);

/// Calls `$then!` with every table: its name in the TOML files, its row, its field of [`Matrix`].
macro_rules! every_table {
    ($then:ident) => {
        $then! {
            branch: DriverBranch => branches,
            minor_floor: MinorFloor => minor_floors,
            forward_compat: ForwardCompat => forward_compat,
            toolkit: Toolkit => toolkits,
            compiler: Compiler => compilers,
            capability: Capability => capabilities,
            gpu: Gpu => gpus,
            chip: Chip => chips,
            cudnn: CudnnBuild => cudnn,
            nccl: NcclBuild => nccl,
            unmeasured: UnmeasuredLibrary => unmeasured,
            components: Components => components,
            variant: Variant => variants,
            known_version: KnownVersion => known_versions,
            rowless_wheels: RowlessWheels => rowless_wheels,
            companion: Companion => companions,
            numpy_limit: NumpyLimit => numpy_limits,
            base: Base => bases,
            stack: DeveloperStack => stacks,
            product: Product => products,
            component: ComponentWheel => component_wheels,
            nvcc_package: NvccPackage => nvcc_packages,
            nvcc_wheels: NvccWheels => nvcc_wheels,
            ptxas_wheels: PtxasWheels => ptxas_wheels,
            nvcc_repository: NvccRepository => nvcc_repositories,
            nvcc_vendor: NvccVendor => nvcc_vendor,
            profilers: Profilers => profilers,
            source_floor: SourceFloor => source_floors,
            device_code: DeviceCodeSize => device_code,
            source_build: SourceBuild => source_builds,
            jit: JitCompiler => jit,
            coupled_package: CoupledPackage => coupled_packages,
            coupled_release: CoupledRelease => coupled_releases,
            source_recipe: SourceRecipe => source_recipes,
            requirement: FrameworkRequirement => requirements,
            same_module: SameModule => same_modules,
            wheel_libraries: WheelLibraries => wheel_libraries,
            distribution_library: DistributionLibrary => distribution_libraries,
            conda: CondaName => conda_names,
            catalogue: CatalogueImage => catalogue,
            implies: ImpliedFramework => implied_frameworks,
        }
    };
}
pub(super) use every_table;

macro_rules! all_rows {
    ($($table:ident: $row:ident => $field:ident,)*) => {
        impl Matrix {
            /// Returns every row of every table.
            pub fn rows(&self) -> Vec<&dyn Row> {
                let mut rows: Vec<&dyn Row> = Vec::new();
                $(rows.extend(self.$field.iter().map(|row| row as &dyn Row));)*
                rows
            }
        }
    };
}
every_table!(all_rows);
