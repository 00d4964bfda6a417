//! The machine's devices for RDMA: InfiniBand and RoCE.
#![expect(clippy::disallowed_methods, reason = "reads the files that describe this machine")]

use camino::Utf8Path;

/// The devices of a machine that containers can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RdmaDevices {
    /// The directory of their files: `/dev/infiniband`.
    pub folder: &'static str,
    /// Names of those that run over Ethernet (RoCE): `mlx5_2`.
    pub roce: Vec<String>,
}

/// Looks below a root: `/`, or a directory in tests. `None`: no device has a file that a program could open.
pub fn rdma_devices(root: &Utf8Path) -> Option<RdmaDevices> {
    let names = |path: &str| -> Vec<String> {
        let found = root.join(path).read_dir_utf8().into_iter().flatten().flatten();
        let mut names: Vec<_> = found.map(|entry| entry.file_name().to_owned()).collect();
        names.sort();
        names
    };
    if !names("dev/infiniband").iter().any(|name| name.starts_with("uverbs")) {
        return None;
    }
    let is_ethernet = |device: &String| {
        let ports = format!("sys/class/infiniband/{device}/ports");
        names(&ports).iter().any(|port| {
            let kind = fs_err::read_to_string(root.join(&ports).join(port).join("link_layer"));
            kind.is_ok_and(|kind| kind.trim() == "Ethernet")
        })
    };
    let roce = names("sys/class/infiniband").into_iter().filter(is_ethernet).collect();
    Some(RdmaDevices { folder: "/dev/infiniband", roce })
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;

    #[test]
    fn devices_are_those_with_a_file_of_verbs() {
        let folder = tempfile::tempdir().expect("folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs_err::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs_err::write(path, text).expect("written");
        };
        assert_eq!(rdma_devices(&root), None);
        write("sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
        write("sys/class/infiniband/mlx5_1/ports/1/link_layer", "Ethernet\n");
        write("dev/infiniband/rdma_cm", "");
        assert_eq!(rdma_devices(&root), None, "the driver of the devices is not loaded");
        write("dev/infiniband/uverbs0", "");
        let found = rdma_devices(&root).expect("devices");
        assert_eq!((found.folder, found.roce), ("/dev/infiniband", vec!["mlx5_1".to_owned()]));
    }
}
