//! The configuration of a site and that of a user as one. Pure.

use camino::{Utf8Path, Utf8PathBuf};
use toml::{Table, Value};

use super::config::{Config, parse_config};
use super::error::SettingsError;
use super::tables::{Origins, TABLES};
use super::trust::{KeyPurpose, TrustConfig, TrustedKey};

/// A configuration file.
pub(super) struct ConfigText<'a> {
    /// Its path.
    pub(super) file: &'a Utf8Path,
    /// Its text.
    pub(super) text: &'a str,
}

/// Joins both files key by key: the user's value wins, but for `[policy]` and `[trust]`, which it may only tighten. Returns what is to be
/// warned of.
pub(super) fn joined(
    site: Option<&ConfigText<'_>>,
    user: Option<&ConfigText<'_>>,
) -> Result<(Config, Vec<String>), SettingsError> {
    let of_user = user
        .map(|user| Ok::<_, SettingsError>((parse_config(user.file, user.text)?, table(user)?)))
        .transpose()?;
    let Some(site) = site else {
        let Some((mut config, table)) = of_user else { return Ok(<(Config, Vec<String>)>::default()) };
        config.origins = origins(&table, user.map_or(Utf8Path::new(""), |user| user.file));
        return Ok((config, Vec::new()));
    };
    let (of_site, mut tables, warnings) = of_site(site)?;
    let mut all = origins(&tables, site.file);
    let Some(((of_user, table), user)) = of_user.zip(user) else {
        let trust = trusted(&tables, (&of_site.trust, &TrustConfig::default()), &Table::new());
        // Without a user's file there is nothing that could add to it.
        let trust = trust.map_err(|keys| SettingsError::Loosened { file: site.file.to_owned(), keys })?;
        return Ok((Config { trust, origins: all, ..of_site }, warnings));
    };
    let loosened = |keys| SettingsError::Loosened { file: user.file.to_owned(), keys };
    let trust = trusted(&tables, (&of_site.trust, &of_user.trust), &table);
    let (trust, policy) = match (trust, of_site.policy.tightened(&of_user.policy)) {
        (Ok(trust), Ok(policy)) => (trust, policy),
        (trust, policy) => {
            let keys = [trust.err(), policy.err()].into_iter().flatten().flatten().collect();
            return Err(loosened(keys));
        }
    };
    all.extend(origins(&table, user.file));
    for (name, value) in table {
        match (tables.get_mut(&name), value) {
            (Some(Value::Table(under)), Value::Table(over)) => under.extend(over),
            (_, value) => drop(tables.insert(name, value)),
        }
    }
    let both: Config = Value::Table(tables).try_into().map_err(|error: toml::de::Error| {
        // Each is valid alone, so that together they are, unless two keys exclude each other.
        let file = Utf8PathBuf::from(format!("{} with {}", site.file, user.file));
        SettingsError::Malformed { file, detail: error.to_string().trim_end().to_owned() }
    })?;
    Ok((Config { trust, policy, origins: all, ..both }, warnings))
}

/// The site's configuration. A table of a newer envforge is left out with a warning: the site serves programs of many ages. A rule that
/// is not known is an error: it would not hold.
fn of_site(site: &ConfigText<'_>) -> Result<(Config, Table, Vec<String>), SettingsError> {
    let mut tables = table(site)?;
    let (known, unknown): (Table, Table) =
        std::mem::take(&mut tables).into_iter().partition(|(name, _)| TABLES.contains(&name.as_str()));
    if unknown.is_empty() {
        return Ok((parse_config(site.file, site.text)?, known, Vec::new()));
    }
    let warnings = unknown.keys().map(|name| {
        format!(
            "`[{name}]` of {} is unknown to this envforge and does nothing: it may need a newer one",
            site.file
        )
    });
    let config: Config = Value::Table(known.clone()).try_into().map_err(|error: toml::de::Error| {
        SettingsError::Malformed {
            file: site.file.to_owned(),
            detail: error.to_string().trim_end().to_owned(),
        }
    })?;
    Ok((config, known, warnings.collect()))
}

fn table(of: &ConfigText<'_>) -> Result<Table, SettingsError> {
    of.text.parse().map_err(|error: toml::de::Error| SettingsError::Malformed {
        file: of.file.to_owned(),
        detail: error.to_string().trim_end().to_owned(),
    })
}

/// The file for each key.
fn origins(table: &Table, file: &Utf8Path) -> Origins {
    let keys = table.iter().filter_map(|(name, value)| Some((name, value.as_table()?)));
    let keys = keys.flat_map(|(name, keys)| keys.keys().map(move |key| format!("{name}.{key}")));
    keys.map(|key| (key, file.to_owned())).collect()
}

/// What both trust: what the site names, or as much of it as the user names. Errors: what the user would add.
fn trusted(
    tables: &Table,
    (site, user): (&TrustConfig, &TrustConfig),
    of_user: &Table,
) -> Result<TrustConfig, Vec<String>> {
    let names = |table: &Table, key: &str| table.get("trust").is_some_and(|trust| trust.get(key).is_some());
    let mut loosened = Vec::new();
    let projects = match (names(tables, "projects"), names(of_user, "projects")) {
        (true, true) => {
            let more = user.projects.iter().filter(|project| !site.projects.contains(project));
            loosened.extend(
                more.map(|project| format!("trust.projects names {project}, and the site's list does not")),
            );
            user.projects.clone()
        }
        (false, _) => user.projects.clone(),
        (true, false) => site.projects.clone(),
    };
    let is_listed = names(tables, "keys");
    let mut keys = match (is_listed, names(of_user, "keys")) {
        (true, true) => user.keys.iter().flat_map(|key| narrowed(&site.keys, key, &mut loosened)).collect(),
        (true, false) => site.keys.clone(),
        (false, _) => user.keys.clone(),
    };
    // A file that the site names is read as the site's: root's alone.
    for key in &mut keys {
        key.is_of_site = is_listed;
    }
    if loosened.is_empty() {
        Ok(TrustConfig { projects, keys, is_closed: names(tables, "projects") })
    } else {
        Err(loosened)
    }
}

/// What a user's entry leaves of the site's entries of the same key; each thing it would add gives a line.
fn narrowed(site: &[TrustedKey], user: &TrustedKey, loosened: &mut Vec<String>) -> Vec<TrustedKey> {
    let file = &user.file;
    let known: Vec<&TrustedKey> = site.iter().filter(|known| known.file == *file).collect();
    if known.is_empty() {
        loosened.push(format!("trust.keys names {file}, and the site's list does not"));
    }
    let mut kept = Vec::new();
    for purpose in [KeyPurpose::Provenance, KeyPurpose::Tests].into_iter().filter(|one| user.is_for(*one)) {
        let of_site: Vec<_> = known.iter().filter(|known| known.is_for(purpose)).collect();
        if of_site.is_empty() && !known.is_empty() && user.purposes.is_some() {
            loosened.push(format!("trust.keys trusts {file} for more than the site does"));
        }
        // The longest of the site's, which the user may shorten.
        let ends: Vec<_> = of_site.iter().map(|known| known.not_after).collect();
        let end = if ends.contains(&None) { None } else { ends.into_iter().flatten().max() };
        match (end, user.not_after) {
            (Some(site), Some(user)) if user > site => {
                loosened.push(format!("trust.keys has {file} until {user}, where the site has {site}"));
            }
            (site, user) if !of_site.is_empty() => kept.push(TrustedKey {
                file: file.clone(),
                not_after: user.or(site),
                purposes: Some(vec![purpose]),
                is_of_site: true,
            }),
            _ => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure as _;
    use crate::model::request::Level;
    use crate::settings::policy::{ProvenOn, UnknownStacks};

    fn both(site: &str, user: &str) -> Result<(Config, Vec<String>), SettingsError> {
        let text = |file, text| ConfigText { file: Utf8Path::new(file), text };
        joined(Some(&text("/site.toml", site)), Some(&text("/user.toml", user)))
    }

    fn refused(site: &str, user: &str, why: &[&str]) {
        let error = both(site, user).expect_err("refused");
        let text = format!("{error} {}", error.hints().join(" "));
        for why in why {
            assert!(text.contains(why), "{why}: {text}");
        }
    }

    #[test]
    fn user_wins_key_by_key_and_each_key_knows_its_file() {
        let site =
            "[mirrors]\ndebian = 'http://site'\nubuntu = 'http://site'\n[engine]\nhost = 'unix:///s'\n";
        let user = "[mirrors]\ndebian = 'http://user'\n[index]\ndefault = 'http://user'\n";
        let (config, warnings) = both(site, user).expect("joined");
        assert_eq!(config.mirrors.debian.as_deref(), Some("http://user"));
        assert_eq!(config.mirrors.ubuntu.as_deref(), Some("http://site"));
        assert_eq!(warnings, [""; 0]);
        let file = |key: &str| config.origins[key].as_str();
        let files = ["mirrors.debian", "mirrors.ubuntu", "index.default", "engine.host"].map(file);
        assert_eq!(files, ["/user.toml", "/site.toml", "/user.toml", "/site.toml"]);
    }

    #[test]
    fn each_file_alone_counts_whole() {
        let text = "[mirrors]\ndebian = 'http://one'\n[policy]\nunknown = 'refuse'\n";
        let file = ConfigText { file: Utf8Path::new("/one.toml"), text };
        for (site, user) in [(Some(&file), None), (None, Some(&file))] {
            let (config, _) = joined(site, user).expect("read");
            assert_eq!(config.policy.unknown, Some(UnknownStacks::Refuse));
            assert_eq!(config.origins["mirrors.debian"], "/one.toml");
        }
        assert!(joined(None, None).expect("nothing").0.origins.is_empty());
    }

    #[test]
    fn table_of_a_newer_version_is_a_warning_and_a_newer_rule_an_error() {
        let newer = "[satellites]\nhost = 'x'\n[mirrors]\ndebian = 'http://site'\n";
        let (config, warnings) = both(newer, "").expect("read");
        assert_eq!(config.mirrors.debian.as_deref(), Some("http://site"));
        assert!(warnings.len() == 1 && warnings[0].contains("`[satellites]` of /site.toml"), "{warnings:?}");
        refused("[policy]\nrequire-moon = true\n", "", &["/site.toml", "require-moon"]);
        refused("[satellites]\n[policy]\nrequire-moon = true\n", "", &["/site.toml", "require-moon"]);
        refused("[trust]\nmoon = true\n", "", &["/site.toml", "moon"]);
        // The user's own file is of this program.
        refused("", "[satellites]\n", &["/user.toml", "satellites"]);
    }

    #[test]
    fn policy_is_tightened_never_loosened() {
        let site = "[policy]\nunknown = 'refuse'\nrequire-evidence = { level = 'full', max-age = '30d' }\n";
        let user = "[policy]\nrequire-evidence = { level = 'perf', max-age = '7d' }\n";
        let policy = both(site, user).expect("tighter").0.policy;
        let evidence = policy.require_evidence.expect("required");
        assert_eq!(
            (evidence.level(), evidence.max_age().hours(), evidence.gpu()),
            (Level::Perf, 168, ProvenOn::Here)
        );
        assert_eq!(policy.unknown, Some(UnknownStacks::Refuse));
        // All that is wrong at once; what the site leaves to the default is a rule, too.
        let user = "[policy]\nunknown = 'warn'\nrequire-evidence = { level = 'quick', max-age = '31d', gpu = 'any' }\n";
        let why = [
            "/user.toml",
            "policy.unknown = \"warn\", where the site has \"refuse\"",
            "policy.require-evidence.level = \"quick\", where the site has \"full\"",
            "policy.require-evidence.max-age = \"31d\", where the site has \"30d\"",
            "policy.require-evidence.gpu = \"any\", where the site has \"here\"",
        ];
        refused(site, user, &why);
        // An empty table of the user takes nothing away.
        let (one, two) = ("1".repeat(64), "2".repeat(64));
        let agents = |of_site: &str, of_user: &str| {
            let text = |list: &str| {
                if list.is_empty() { String::new() } else { format!("[policy]\nagents = [{list}]\n") }
            };
            both(&text(of_site), &text(of_user)).map(|(config, _)| config.policy.agents.map(|all| all.len()))
        };
        let both_agents = format!("'{one}', '{two}'");
        assert_eq!(agents(&both_agents, &format!("'{one}'")).expect("fewer"), Some(1));
        assert_eq!(agents(&both_agents, "").expect("as the site"), Some(2));
        assert_eq!(agents("", &format!("'{one}'")).expect("the user's own"), Some(1));
        assert!(agents(&format!("'{one}'"), &both_agents).is_err());
        assert!(agents("'abc'", "").is_err());
        let empty = both(&format!("[policy]\nagents = ['{one}']\n"), "[policy]\nagents = []\n");
        assert!(empty.is_err(), "an empty list would let all agents count");
        let kept = both(site, "[policy]\nrequire-evidence = {}\n").expect("as the site").0.policy;
        assert_eq!(kept.require_evidence.expect("required").level(), Level::Full);
    }

    #[test]
    fn trust_of_the_site_is_narrowed_never_widened() {
        let site = "[trust]\nprojects = ['/a', '/b']\nkeys = [{ file = '/k.pub', not-after = '2027-01-31' }, { file = '/l.pub' }]\n";
        let user = "[trust]\nprojects = ['/b']\nkeys = [{ file = '/k.pub' }]\n";
        let trust = both(site, user).expect("narrower").0.trust;
        assert_eq!((trust.projects.len(), trust.keys.len()), (1, 2), "an entry for each purpose");
        assert_eq!(trust.keys[0].not_after, Some(jiff::civil::date(2027, 1, 31)), "the site's end stays");
        assert!(trust.keys[0].is_of_site);
        let wide = "[trust]\nprojects = ['/c']\nkeys = [{ file = '/mine.pub' }, { file = '/k.pub', not-after = '2028-01-01' }]\n";
        refused(
            site,
            wide,
            &["trust.projects names /c", "trust.keys names /mine.pub", "/k.pub until 2028-01-01"],
        );
        let site_tests = "[trust]\nkeys = [{ file = '/k.pub', for = ['tests'] }]\n";
        refused(
            site_tests,
            "[trust]\nkeys = [{ file = '/k.pub', for = ['provenance'] }]\n",
            &["for more than the site"],
        );
        let kept = both(site_tests, "[trust]\nkeys = [{ file = '/k.pub' }]\n").expect("as the site").0.trust;
        assert!(!kept.keys[0].is_for(KeyPurpose::Provenance));
        // One file for two purposes, each with its own end: the user's file may be there or not.
        let twice = "[trust]\nprojects = []\nkeys = [{ file = '/k.pub', for = ['tests'] }, { file = '/k.pub', for = ['provenance'], not-after = '2027-01-31' }]\n";
        for user in ["", "[mirrors]\n", "[trust]\nkeys = [{ file = '/k.pub' }]\n"] {
            let trust = both(twice, user).expect("as the site").0.trust;
            assert!(trust.is_closed && trust.keys.len() == 2 && trust.keys.iter().all(|key| key.is_of_site));
            let end = |purpose| trust.keys.iter().find(|key| key.is_for(purpose)).expect("one").not_after;
            assert_eq!(end(KeyPurpose::Tests), None);
            assert_eq!(end(KeyPurpose::Provenance), Some(jiff::civil::date(2027, 1, 31)));
        }
        let file = ConfigText { file: Utf8Path::new("/site.toml"), text: twice };
        let alone = joined(Some(&file), None).expect("read").0.trust;
        assert!(alone.is_closed && alone.keys.iter().all(|key| key.is_of_site));
        // A list that is empty is a list: nothing is trusted.
        refused("[trust]\nkeys = []\nprojects = []\n", wide, &["/mine.pub", "/c"]);
        // What the site says nothing of is the user's.
        let trust = both("[trust]\nprojects = []\n", "[trust]\nkeys = [{ file = '/mine.pub' }]\n")
            .expect("own")
            .0
            .trust;
        assert!(trust.projects.is_empty() && !trust.keys[0].is_of_site);
    }
}
