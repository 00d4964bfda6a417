//! Every environment variable that envforge reads, in one table: the settings read through it, the reference page lists it.

use super::environment::{Environment, first};

/// A setting that environment variables hold.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    /// The names, the first that is set wins. `*` stands for any end of a name.
    pub names: &'static [&'static str],
    /// The key of the configuration file that it overrides; empty: none.
    pub key: &'static str,
    /// The meaning, as one sentence without a full stop.
    pub meaning: &'static str,
}

impl Variable {
    /// Returns the value of the first name that is set and not empty.
    pub(super) fn of(&self, environment: &Environment) -> Option<String> {
        first(environment, self.names)
    }

    /// Returns the value of the first name that is set, also an empty one.
    pub(super) fn set_or_empty<'a>(&self, environment: &'a Environment) -> Option<&'a String> {
        self.names.iter().find_map(|name| environment.get(*name))
    }
}

/// Declares the variables and the list of all of them.
macro_rules! variables {
    ($($id:ident [$($name:literal),+] $key:literal $meaning:literal;)*) => {
        $(pub(super) const $id: Variable = Variable { names: &[$($name),+], key: $key, meaning: $meaning };)*
        /// Every variable, by subject.
        pub const VARIABLES: &[Variable] = &[$($id),*];
    };
}

variables! {
    CONFIG ["ENVFORGE_CONFIG"] "" "The configuration file, as `--config`";
    CACHE_DIR ["ENVFORGE_CACHE_DIR"] "" "The directory of downloads, instead of `$XDG_CACHE_HOME/envforge`";
    STATE_DIR ["ENVFORGE_STATE_DIR"] ""
        "The directory of lock files and reports, instead of `$XDG_STATE_HOME/envforge`";
    HOME ["HOME"] "" "The directory that `~` stands for";
    XDG_CACHE_HOME ["XDG_CACHE_HOME"] "" "The directory of caches, `~/.cache` if unset";
    XDG_STATE_HOME ["XDG_STATE_HOME"] "" "The directory of state, `~/.local/state` if unset";
    XDG_CONFIG_HOME ["XDG_CONFIG_HOME"] "" "The directory of configuration files, `~/.config` if unset";

    GPU ["ENVFORGE_GPU"] ""
        "The GPUs of the target machine, separated by commas, as `--gpu`; empty: a machine without GPU";
    DRIVER ["ENVFORGE_DRIVER"] "" "The driver of the target machine, as `--driver`";

    DOCKER_HOST ["DOCKER_HOST"] "engine.host" "The address of the container engine";
    DOCKER_CONTEXT ["DOCKER_CONTEXT"] "" "The Docker context to use; `DOCKER_HOST` wins over it";
    DOCKER_CONFIG ["DOCKER_CONFIG"] "" "Docker's configuration directory, `~/.docker` if unset";
    DOCKER_TLS_VERIFY ["DOCKER_TLS_VERIFY"] "" "If set, a tcp address of the engine uses TLS";
    DOCKER_CERT_PATH ["DOCKER_CERT_PATH"] ""
        "The directory of `ca.pem`, `cert.pem` and `key.pem` for TLS, the configuration directory if unset";
    RUNTIME_DIR ["XDG_RUNTIME_DIR"] "" "The directory of the sockets of rootless engines";

    DEBIAN_MIRROR ["ENVFORGE_DEBIAN_MIRROR"] "mirrors.debian" "The root of a Debian mirror";
    DEBIAN_SECURITY_MIRROR ["ENVFORGE_DEBIAN_SECURITY_MIRROR"] "mirrors.debian-security"
        "The root of a Debian security mirror";
    UBUNTU_MIRROR ["ENVFORGE_UBUNTU_MIRROR"] "mirrors.ubuntu" "The root of an Ubuntu mirror";
    UBUNTU_SECURITY_MIRROR ["ENVFORGE_UBUNTU_SECURITY_MIRROR"] "mirrors.ubuntu-security"
        "The root of an Ubuntu security mirror";
    IMAGE_MIRROR ["ENVFORGE_IMAGE_MIRROR"] "mirrors.images" "A mirror of `docker.io`";
    NVIDIA_MIRROR ["ENVFORGE_NVIDIA_MIRROR"] "mirrors.nvidia" "A copy of NVIDIA's apt repositories";
    NVIDIA_KEY ["ENVFORGE_NVIDIA_KEY"] "mirrors.nvidia-key" "A file with the signing key of that copy";
    NVIDIA_FINGERPRINT ["ENVFORGE_NVIDIA_FINGERPRINT"] "mirrors.nvidia-fingerprint"
        "The fingerprint of that key, if it is not NVIDIA's";

    INDEX ["ENVFORGE_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"] "index.default"
        "The Python package index";
    FRAMEWORK_INDEX ["ENVFORGE_FRAMEWORK_INDEX"] "index.framework"
        "The framework's own index; `{cuda}` stands for the variant, `{version}` for the release";
    VLLM_INDEX ["ENVFORGE_VLLM_INDEX"] "index.vllm"
        "The own index of vLLM, or after `flat+` its release page; `{cuda}` and `{version}` as above";
    ONNXRUNTIME_INDEX ["ENVFORGE_ONNXRUNTIME_INDEX"] "index.onnxruntime" "The own index of ONNX Runtime";
    JAX_INDEX ["ENVFORGE_JAX_INDEX"] "index.jax" "The own index of JAX";
    TENSORFLOW_INDEX ["ENVFORGE_TENSORFLOW_INDEX"] "index.tensorflow" "The own index of TensorFlow";
    NAMED_INDEX ["ENVFORGE_INDEX_*"] "indexes.*"
        "The index that a project calls by that name, in lower case with `-` for `_`; `flat+` precedes a page of links";
    NETRC ["NETRC"] "" "The file of logins by host, `~/.netrc` if unset";

    NETWORK ["ENVFORGE_NETWORK"] "network.mode" "Network mode of build containers: `bridge` or `host`";
    CA_BUNDLE ["ENVFORGE_CA_BUNDLE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT"] "network.ca-bundle"
        "A file of CA certificates to trust";
    HTTP_PROXY ["HTTP_PROXY", "http_proxy"] "network.http-proxy" "Proxy for HTTP";
    HTTPS_PROXY ["HTTPS_PROXY", "https_proxy"] "network.https-proxy" "Proxy for HTTPS";
    NO_PROXY ["NO_PROXY", "no_proxy"] "network.no-proxy" "Hosts reached without proxy";

    REGISTRY ["ENVFORGE_REGISTRY"] "" "The image registry of the login below";
    REGISTRY_USER ["ENVFORGE_REGISTRY_USER"] "" "The user of that registry";
    REGISTRY_PASSWORD ["ENVFORGE_REGISTRY_PASSWORD"] "" "The password of that user";
    SIGNING_KEY ["ENVFORGE_SIGNING_KEY"] "" "The private key that signs evidence, in PEM form: the key itself, not its file";
    SIGNING_PASSWORD ["COSIGN_PASSWORD"] "" "The password of a private key that cosign encrypted";
    LAYERS ["ENVFORGE_LAYERS"] "registry.layers" "The repository of finished layers";
    LAYERS_WRITE ["ENVFORGE_LAYERS_WRITE"] "registry.layers-write"
        "With `true`, builds put layers into that repository that it lacks";
    LAYER_COMPRESSION ["ENVFORGE_LAYER_COMPRESSION"] "registry.compression" "The compression of pushed layers";
    AUTH_CONFIG ["DOCKER_AUTH_CONFIG"] "" "Logins to registries, as the text of Docker's `config.json`";

    NVCC_SOURCES ["ENVFORGE_NVCC_SOURCES"] "toolkit.sources" "Sources of nvcc, separated by commas";
    SOURCE_MIRROR ["ENVFORGE_SOURCE_MIRROR"] "source.mirror"
        "A directory with release archives, tried before their own address";

    NO_COLOR ["NO_COLOR"] "" "If set, output has no color";
    TERM ["TERM"] "" "With `dumb`, output has neither color nor moving bars";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let names: Vec<_> = VARIABLES.iter().flat_map(|variable| variable.names).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }

    #[test]
    fn settings_read_no_variable_by_its_name() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/settings");
        let read = ["environment.get(\"", "set(environment, \"", "set(\"", "first(environment, &[\""];
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let shipped = text.split("mod tests {").next().unwrap();
            let found: Vec<_> = read.iter().filter(|pattern| shipped.contains(*pattern)).collect();
            assert!(found.is_empty() || path.ends_with("variables.rs"), "{}: {found:?}", path.display());
        }
    }
}
