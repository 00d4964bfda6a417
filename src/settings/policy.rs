//! `[policy]`: rules that hold for every call. A user may tighten those of the site, not loosen them.

use std::collections::BTreeSet;
use std::fmt::Display;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::model::request::{Level, MaxAge};
use crate::model::sha256::is_sha256_hex;

/// `[policy]` of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct PolicyConfig {
    /// The proof that an image needs, by checks on this machine or by evidence of a key in `[trust] keys`: `shell` and `run` start no
    /// other, `build`, `push` and `verify` leave others `-unverified`. `{ gpu = "here", level = "quick", max-age = "90d" }`.
    pub require_evidence: Option<RequiredEvidence>,
    /// A stack of which the matrix does not know whether it runs: `"warn"` (default) or `"refuse"`.
    pub unknown: Option<UnknownStacks>,
    /// The agents whose checks count as evidence, by their SHA-256, as `evidence --json` shows it; without a list all do.
    #[serde(deserialize_with = "agents")]
    #[schemars(with = "Option<Vec<String>>")]
    pub agents: Option<BTreeSet<String>>,
}

/// `require-evidence`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct RequiredEvidence {
    /// `"here"` (default): this machine's GPU models and driver. `"any"`: some GPU.
    pub gpu: Option<ProvenOn>,
    /// The lowest level: `"quick"` (default), `"full"`, `"perf"`.
    #[serde(deserialize_with = "level")]
    #[schemars(with = "Option<String>")]
    pub level: Option<Level>,
    /// The oldest checks that count, `"90d"` by default.
    #[serde(deserialize_with = "age")]
    #[schemars(with = "Option<String>")]
    pub max_age: Option<MaxAge>,
}

/// The GPUs that an image must be proven on, the stricter one last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProvenOn {
    /// Some GPU.
    Any,
    /// Those of this machine, with its driver.
    Here,
}

/// What becomes of a stack of which the matrix does not know whether it runs, the stricter one last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnknownStacks {
    /// It is built with a warning, and its tag stays `-unverified` until a GPU ran it.
    #[default]
    Warn,
    /// It is refused.
    Refuse,
}

impl RequiredEvidence {
    /// The GPUs.
    pub fn gpu(&self) -> ProvenOn {
        self.gpu.unwrap_or(ProvenOn::Here)
    }

    /// The lowest level.
    pub fn level(&self) -> Level {
        self.level.unwrap_or(Level::Quick)
    }

    /// The oldest checks that count.
    pub fn max_age(&self) -> MaxAge {
        self.max_age.unwrap_or(MaxAge::DEFAULT)
    }
}

impl PolicyConfig {
    /// The rules of a site as a user tightened them; errors: each key that would loosen one.
    pub(super) fn tightened(&self, user: &Self) -> Result<Self, Vec<String>> {
        let mut loosened = Vec::new();
        let unknown = tighter(
            "policy.unknown",
            (self.unknown, |value| if value == UnknownStacks::Warn { "warn" } else { "refuse" }),
            user.unknown,
            |user, site| user >= site,
            &mut loosened,
        );
        let require_evidence = match (&self.require_evidence, &user.require_evidence) {
            (None, user) => user.clone(),
            (Some(site), None) => Some(site.clone()),
            (Some(site), Some(user)) => Some(RequiredEvidence {
                gpu: tighter(
                    "policy.require-evidence.gpu",
                    (Some(site.gpu()), |value| if value == ProvenOn::Any { "any" } else { "here" }),
                    user.gpu,
                    |user, site| user >= site,
                    &mut loosened,
                ),
                level: tighter(
                    "policy.require-evidence.level",
                    (Some(site.level()), Level::as_str),
                    user.level,
                    |user, site| user >= site,
                    &mut loosened,
                ),
                max_age: tighter(
                    "policy.require-evidence.max-age",
                    (Some(site.max_age()), |value: MaxAge| value),
                    user.max_age,
                    |user, site| user <= site,
                    &mut loosened,
                ),
            }),
        };
        let agents = match (&self.agents, &user.agents) {
            (Some(site), Some(user)) => {
                let more = user.difference(site).cloned().collect::<Vec<_>>();
                if !more.is_empty() {
                    loosened.push(format!(
                        "policy.agents with {}, which the site does not list",
                        more.join(", ")
                    ));
                }
                Some(user.clone())
            }
            (site, user) => user.clone().or_else(|| site.clone()),
        };
        if loosened.is_empty() { Ok(Self { require_evidence, unknown, agents }) } else { Err(loosened) }
    }
}

/// The user's value if it is as strict as the site's, else the site's, with a line for what was refused.
fn tighter<T: Copy, S: Display>(
    key: &str,
    (site, shown): (Option<T>, impl Fn(T) -> S),
    user: Option<T>,
    is_as_strict: impl Fn(&T, &T) -> bool,
    loosened: &mut Vec<String>,
) -> Option<T> {
    match (site, user) {
        (Some(site), Some(user)) if !is_as_strict(&user, &site) => {
            loosened.push(format!("{key} = \"{}\", where the site has \"{}\"", shown(user), shown(site)));
            Some(site)
        }
        (site, user) => user.or(site),
    }
}

fn level<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Level>, D::Error> {
    let name = String::deserialize(from)?;
    // A level without a GPU is no evidence.
    let level = Level::parse(&name).filter(|level| *level != Level::Static);
    let unknown = || D::Error::custom(format_args!("invalid level `{name}` (expected quick, full or perf)"));
    level.map(Some).ok_or_else(unknown)
}

fn agents<'de, D: Deserializer<'de>>(from: D) -> Result<Option<BTreeSet<String>>, D::Error> {
    let all = BTreeSet::<String>::deserialize(from)?;
    if all.is_empty() {
        return Err(D::Error::custom("a list without an agent admits nothing (omit it: all count)"));
    }
    match all.iter().find(|hash| !is_sha256_hex(hash)) {
        Some(hash) => Err(D::Error::custom(format_args!(
            "invalid agent `{hash}` (expected the 64 hex digits of a SHA-256)"
        ))),
        None => Ok(Some(all)),
    }
}

fn age<'de, D: Deserializer<'de>>(from: D) -> Result<Option<MaxAge>, D::Error> {
    String::deserialize(from)?.parse().map(Some).map_err(D::Error::custom)
}
