//! The user in a container: the caller, with any id.
//!
//! Pure: creates /etc/passwd and /etc/group from the image's files and the ids.

use crate::engine::EngineInfo;

/// The name of the user in a container.
const NAME: &str = "dev";

/// The caller in the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    /// The user id in the container.
    pub(crate) uid: u32,
    /// The group id in the container.
    pub(crate) gid: u32,
    /// The user namespace mode, if any.
    pub(crate) namespace: Option<String>,
}

impl User {
    /// Returns the caller on that engine: the same ids, or root on rootless Docker, which maps root to the caller.
    pub(crate) fn on(engine: &EngineInfo, (uid, gid): (u32, u32)) -> Self {
        if engine.is_podman() {
            let namespace = engine.rootless.then(|| "keep-id".to_owned());
            Self { uid, gid, namespace }
        } else if engine.rootless {
            Self { uid: 0, gid: 0, namespace: None }
        } else {
            Self { uid, gid, namespace: None }
        }
    }

    /// Returns `uid:gid`.
    pub(crate) fn numbers(&self) -> String {
        format!("{}:{}", self.uid, self.gid)
    }

    /// Returns uid and gid.
    pub(crate) fn owner(&self) -> (u32, u32) {
        (self.uid, self.gid)
    }

    /// Returns the image's /etc/passwd with this user as the first entry. If the image has another name for the same id,
    /// both names resolve to the id, and the id to this name.
    pub(crate) fn passwd(&self, image: &str, home: &str) -> String {
        let name = self.name();
        let own = format!("{name}:x:{}:{}::{home}:/bin/bash", self.uid, self.gid);
        with_first(own, image, name)
    }

    /// Returns the image's /etc/group with this user's group.
    pub(crate) fn group(&self, image: &str) -> String {
        let name = if self.gid == 0 { "root" } else { NAME };
        with_first(format!("{name}:x:{}:", self.gid), image, name)
    }

    /// Returns `dev`, or `root` for root, which programs look up by name.
    pub(crate) fn name(&self) -> &'static str {
        if self.uid == 0 { "root" } else { NAME }
    }
}

fn with_first(own: String, image: &str, name: &str) -> String {
    let others = image.lines().filter(|line| line.split(':').next() != Some(name) && !line.is_empty());
    let mut text = own;
    for line in others {
        text.extend(["\n", line]);
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: &str = "root:x:0:0:root:/root:/bin/bash\nwww-data:x:33:33::/var/www:/usr/sbin/nologin\ndev:x:1000:1000::/home/dev:/bin/bash\n";

    fn passwd(uid: u32) -> Vec<String> {
        let user = User { uid, gid: uid, namespace: None };
        user.passwd(IMAGE, "/home/dev").lines().map(str::to_owned).collect()
    }

    #[test]
    fn passwd_maps_the_callers_id_to_one_name() {
        assert_eq!(passwd(50000)[0], "dev:x:50000:50000::/home/dev:/bin/bash");
        assert_eq!(passwd(50000).len(), 3, "the image's own dev is gone");
        assert_eq!(passwd(33)[0], "dev:x:33:33::/home/dev:/bin/bash");
        assert!(passwd(33).iter().any(|line| line.starts_with("www-data:")), "a clash keeps both names");
        assert_eq!(passwd(0)[0], "root:x:0:0::/home/dev:/bin/bash");
        assert_eq!(passwd(0).iter().filter(|line| line.starts_with("root:")).count(), 1);
    }

    #[test]
    fn group_maps_the_callers_group() {
        let user = User { uid: 7, gid: 1000, namespace: None };
        assert_eq!(user.group("root:x:0:\ndev:x:1000:\n"), "dev:x:1000:\nroot:x:0:\n");
    }
}
