//! The file that gives login shells the PATH of the image: Debian's /etc/profile sets its own.
//!
//! Pure. One text for images and for the files that clusters start.

use serde_json::json;

use super::render::rendered;

/// Its path in the image, without the leading `/`. The last of /etc/profile.d to be read.
pub(crate) const LOGIN_PROFILE: &str = "etc/profile.d/zz-envforge.sh";

/// Returns its text for an image with this PATH.
pub(crate) fn login_profile(path: &str) -> String {
    rendered(include_str!("../../../templates/files/profile.sh.j2").trim_end(), &json!({ "path": path }))
}
