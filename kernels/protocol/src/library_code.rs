//! The lines of `agent code`: the device code of one library each, and [`done_line`](crate::done_line) at the end.

use crate::json;

/// The device code of a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryCode {
    /// Its path in the image.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// The bytes of each architecture (`sm_90`: machine code, `compute_90`: PTX), or why they are unknown.
    pub code: Result<Vec<(String, u64)>, String>,
}

impl LibraryCode {
    /// Returns the line as JSON, without a line end.
    pub fn to_json(&self) -> String {
        let code = match &self.code {
            Ok(code) => {
                let bytes: Vec<_> =
                    code.iter().map(|(name, bytes)| format!("{}:{bytes}", json::string(name))).collect();
                format!("\"code\":{{{}}}", bytes.join(","))
            }
            Err(reason) => format!("\"unknown\":{}", json::string(reason)),
        };
        format!("{{\"path\":{},\"size\":{},{code}}}", json::string(&self.path), self.size)
    }
}
