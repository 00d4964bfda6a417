//! A small lock for tests, and any lock for property tests.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::added::UserAdditions;
use super::toml::SCHEMA;
use super::types::{
    BaseProvider, IndexKind, Lock, LockMetadata, LockedBase, LockedDeb, LockedTool, LockedWheel, WheelLayer,
};
use crate::model::compat::tables::{Channel, PtxasVariable, Status};
use crate::model::stack::{Flavour, PtxasChoice, Reason, Requires, Stack};
use crate::model::target::Target;
use crate::model::versions::Machine;

/// The stack of `pytorch-cuda:2.8-cu128` on Debian 12.
pub(crate) fn stack() -> Stack {
    Stack {
        name: "pytorch-cuda:2.8.0-cu128-py3.11".to_owned(),
        product: "pytorch-cuda".to_owned(),
        framework: "pytorch".to_owned(),
        package: "torch".to_owned(),
        version: "2.8.0".parse().unwrap(),
        cuda: "cu128".parse().unwrap(),
        toolkit: "12.8.1".parse().unwrap(),
        cudnn: Some("9.10.2.21".parse().unwrap()),
        nccl: Some("2.27.3".parse().unwrap()),
        triton: Some("3.4.0".to_owned()),
        companions: BTreeMap::from([
            ("torchaudio".to_owned(), "2.8.0".to_owned()),
            ("torchvision".to_owned(), "0.23.0".to_owned()),
        ]),
        python: "3.11".parse().unwrap(),
        glibc: "2.28".parse().unwrap(),
        flavour: Flavour::Runtime,
        machine: Machine::X86_64,
        channel: Channel::Default,
        status: Status::Stable,
        experimental: false,
        local: false,
        licence: None,
        base: "debian:12".to_owned(),
        suite: "bookworm".to_owned(),
        requires: Requires {
            driver: Some("525.60.13".parse().unwrap()),
            driver_native: Some("570.124.06".parse().unwrap()),
            gpu: vec!["7.0".parse().unwrap(), "9.0".parse().unwrap()],
            ptx: Vec::new(),
        },
        forward_compat: None,
        install: Vec::new(),
        shared: Vec::new(),
        parts: BTreeMap::new(),
        nvcc: None,
        ptxas: None,
        source_build: None,
        numpy: None,
        target: Target::any(Machine::X86_64),
        matrix: "2026-11-20.1a2b3c4d5e6f".to_owned(),
        reasons: vec![Reason {
            field: "cuda".to_owned(),
            chosen: "cu128".to_owned(),
            because: "it was asked for".to_owned(),
            source: "the spec".to_owned(),
        }],
    }
}

/// A lock of [`stack`] with one entry of each kind.
pub(crate) fn lock() -> Lock {
    Lock {
        schema: SCHEMA,
        spec: "pytorch-cuda:2.8-cu128".to_owned(),
        added: UserAdditions { python: vec!["httpx".to_owned()], ..UserAdditions::default() },
        stack: stack(),
        base: LockedBase {
            provider: BaseProvider::Bootstrap,
            name: "debian:12".to_owned(),
            suite: "bookworm".to_owned(),
            digest: None,
            content: Some("1".repeat(64)),
            image: None,
            cuda: false,
            packages: vec![deb("libc6", "2.36-9+deb12u14")],
        },
        tools: vec![LockedTool {
            name: "uv".to_owned(),
            version: "0.13.9".to_owned(),
            file: "uv-0.13.9-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl".to_owned(),
            sha256: "2".repeat(64),
        }],
        system: vec![deb("python3", "3.11.2-1+b1")],
        unpacked: Vec::new(),
        apt: Vec::new(),
        wheels: vec![LockedWheel {
            name: "torch".to_owned(),
            version: "2.8.0".to_owned(),
            file: "torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl".to_owned(),
            sha256: "3".repeat(64),
            size: None,
            index: IndexKind::Default,
            index_name: None,
            layer: WheelLayer::Framework,
        }],
        sources: Vec::new(),
        environment: BTreeMap::from([("LANG".to_owned(), "C.UTF-8".to_owned())]),
        records: LockMetadata {
            created: "2026-11-21T10:00:00Z".to_owned(),
            envforge: "0.1.0".to_owned(),
            matrix: "2026-11-20.1a2b3c4d5e6f".to_owned(),
            ..LockMetadata::default()
        },
    }
}

/// The ptxas that Triton 3.4.0 takes for a GB10.
pub(crate) fn ptxas() -> Box<PtxasChoice> {
    Box::new(PtxasChoice {
        cuda: "12.9.1".parse().unwrap(),
        parts: BTreeMap::from([("nvidia-cuda-nvcc-cu12".to_owned(), "12.9.86".to_owned())]),
        file: "nvidia/cuda_nvcc/bin/ptxas".to_owned(),
        variable: PtxasVariable::EveryGpu,
        gpus: vec!["12.1".parse().unwrap()],
    })
}

/// A package of that name and version; its hash is made of the name.
pub(crate) fn deb(name: &str, version: &str) -> LockedDeb {
    LockedDeb {
        name: name.to_owned(),
        version: version.to_owned(),
        architecture: "amd64".to_owned(),
        sha256: crate::model::sha256::sha256_hex(format!("{name} {version}").as_bytes()),
        size: 1234,
        path: format!("pool/main/x/{name}/{name}_{version}_amd64.deb"),
    }
}

fn any_wheel() -> impl Strategy<Value = LockedWheel> {
    let layer = prop_oneof![Just(WheelLayer::Cuda), Just(WheelLayer::Framework), Just(WheelLayer::User)];
    (
        "[a-z][a-z0-9]{0,6}(-[a-z0-9]{1,4}){0,2}",
        "([0-9][A-Za-z0-9.+!_-]{0,8})?",
        "[A-Za-z0-9_.+]{1,20}\\.whl",
        "[0-9a-f]{64}",
        any::<Option<u32>>(),
        layer,
    )
        .prop_map(|(name, version, file, sha256, size, layer)| LockedWheel {
            name,
            version,
            file,
            sha256,
            size: size.map(u64::from),
            index: if layer == WheelLayer::User { IndexKind::Default } else { IndexKind::Framework },
            index_name: None,
            layer,
        })
}

/// Locks with strange texts, empty and long lists.
pub(crate) fn any_lock() -> impl Strategy<Value = Lock> {
    let wheels = prop::collection::vec(any_wheel(), 0..5);
    let environment = prop::collection::btree_map("\\PC{0,10}", "[\\PC\\n\\t]{0,20}", 0..5);
    let python = prop::collection::vec("\\PC{0,20}", 0..3);
    (wheels, environment, python, "\\PC{0,20}", any::<bool>(), any::<Option<u16>>()).prop_map(
        |(wheels, environment, python, spec, bootstrap, nccl)| {
            let added = UserAdditions { python, ..UserAdditions::default() };
            let mut lock = Lock { wheels, environment, added, spec: spec.clone(), ..lock() };
            lock.stack.nccl = nccl.map(|minor| format!("2.{minor}").parse().unwrap());
            lock.stack.reasons[0].because = spec;
            lock.stack.ptxas = nccl.map(|_| ptxas());
            if !bootstrap {
                lock.base.packages.clear();
                lock.base.digest = Some(format!("sha256:{}", "4".repeat(64)));
            }
            lock
        },
    )
}
