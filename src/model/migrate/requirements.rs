//! Requirement files as pip reads them, line by line: a line that is not understood takes no other with it.

use pep440_rs::VersionSpecifiers;

use super::index_page::{IndexMeaning, has_login, meaning, name_of};
use super::place::Origin;
use super::reading::{Asked, CudaFact, IndexSeen, Kind, PythonFact, Reading, Strength, shortened};
use super::requirement_line::{JETSON, Line, line};
use super::shell_words::joined_lines;

/// Reads a requirements file, or one of constraints.
pub fn from_requirement_lines(file: &str, text: &str) -> Reading {
    let mut reading = Reading::of(file, Kind::Requirements);
    reading.is_readable_by_lock = true;
    let lines = joined_lines(text, without_comment);
    if let Some(at) = table_of_pip(&lines) {
        reading.is_readable_by_lock = false;
        let why = format!("the table of `pip list`: write the file with `pip freeze > {file}`");
        reading.leave(Origin::line(file, at), "Package Version", why);
        return reading;
    }
    for (at, content) in lines {
        take_line(&mut reading, &content, &Origin::line(file, at));
    }
    from_feed(&mut reading);
    reading
}

/// The line at which a text begins that is what `pip list` prints: a head, and a line of hyphens.
fn table_of_pip(lines: &[(usize, String)]) -> Option<usize> {
    let [(at, head), (_, rule), ..] = lines else { return None };
    let is_head = head.split_whitespace().take(2).eq(["Package", "Version"]);
    let is_rule = rule.starts_with("--") && rule.chars().all(|c| c == '-' || c.is_whitespace());
    (is_head && is_rule).then_some(*at)
}

/// The feed of onnxruntime for a CUDA that its releases on the package index of that time were not for.
const ONNXRUNTIME_FEED: &str = "/_packaging/onnxruntime-cuda-";

/// Lets onnxruntime-gpu come from its own feed where a line names that.
fn from_feed(reading: &mut Reading) {
    let seen = reading.cuda.iter().find_map(|fact| {
        let url =
            fact.by.split_whitespace().find(|word| word.contains(ONNXRUNTIME_FEED) && !has_login(word))?;
        Some(IndexSeen { name: "onnxruntime-cuda".to_owned(), url: url.to_owned(), flat: false })
    });
    let Some(seen) = seen else { return };
    for asked in reading.packages.iter_mut().filter(|asked| asked.name == "onnxruntime-gpu") {
        asked.index = Some(seen.name.clone());
    }
    reading.indexes.push(seen);
}

/// Reads one line: a requirement with its options, or options alone.
pub(super) fn take_line(reading: &mut Reading, content: &str, origin: &Origin) {
    if content.starts_with('-') {
        reading.is_readable_by_lock &=
            ["-r", "--requirement"].iter().any(|option| content.starts_with(option));
        return options(reading, content, origin);
    }
    let (requirement, rest) = cut_options(content);
    reading.hashes += usize::from(rest.contains("--hash"));
    if rest.split_whitespace().any(|word| !word.starts_with("--hash") && word.starts_with('-')) {
        reading.is_readable_by_lock = false;
        options(reading, rest, origin);
    }
    take_requirement(reading, requirement, origin);
}

/// Takes a requirement over, or notes why not.
pub(super) fn take_requirement(reading: &mut Reading, written: &str, origin: &Origin) {
    match line(written, origin) {
        Line::Package(asked) => reading.packages.push(*asked),
        Line::Wheel { asked, python } => {
            reading.is_readable_by_lock = false;
            wheel_python(reading, python, origin, written);
            reading.packages.push(*asked);
        }
        Line::Not(why) => {
            reading.is_readable_by_lock = false;
            match several(written, origin) {
                Some(all) => {
                    let why = "several requirements on one line, which pip refuses: each is taken over";
                    reading.change(origin.clone(), written, why);
                    reading.packages.extend(all);
                }
                None => reading.leave(origin.clone(), written, why),
            }
        }
    }
}

/// The requirements of a line that has more than one, as installers of their own write it: `torch==2.0.1 torchvision==0.15.2`.
fn several(written: &str, origin: &Origin) -> Option<Vec<Asked>> {
    let is_versioned = |word: &str| word.contains(['=', '<', '>']) && !word.contains([';', '@']);
    let mut all = Vec::new();
    for word in written.split_whitespace() {
        match line(word, origin) {
            Line::Package(asked) if is_versioned(word) => all.push(*asked),
            _ => return None,
        }
    }
    Some(all)
}

/// Notes the Python that the name of a wheel says, once in a file.
pub(super) fn wheel_python(
    reading: &mut Reading,
    python: Option<VersionSpecifiers>,
    origin: &Origin,
    written: &str,
) {
    let Some(versions) = python else { return };
    if !reading.python.iter().any(|fact| fact.versions == versions) {
        reading.python.push(PythonFact { origin: origin.clone(), versions, by: shortened(written) });
    }
}

/// The requirement in front of the options behind it: `torch>=2.7 --index-url https://…`.
fn cut_options(content: &str) -> (&str, &str) {
    let at = content.find(" --").or_else(|| content.find(" -i ")).or_else(|| content.find(" -f "));
    at.map_or((content, ""), |at| (content[..at].trim(), content[at..].trim()))
}

/// Reads options, each with its value, and packages that stand behind them on the same line.
pub(super) fn options(reading: &mut Reading, content: &str, origin: &Origin) {
    let mut words = content.split_whitespace();
    while let Some(word) = words.next() {
        let (option, mut value) = word.split_once('=').map_or((word, None), |(o, v)| (o, Some(v)));
        let plain = without_switches(option);
        let option = plain.as_str();
        // `-rfile` and `-ihttps://…`: a short option with its value.
        let (option, glued) = match option.split_at_checked(2) {
            Some((short, rest))
                if !option.starts_with("--") && !rest.is_empty() && option.starts_with('-') =>
            {
                (short, Some(rest))
            }
            _ => (option, None),
        };
        value = glued.or(value);
        let takes_value = !stands_alone(option);
        if !option.starts_with('-') {
            // pip reads an option line to its end and drops what stands behind it.
            reading.leave(
                origin.clone(),
                word,
                "stands behind an option on one line, where pip drops it: give it a line of its own",
            );
            continue;
        }
        let value = match value {
            Some(value) => value,
            None if takes_value => words.next().unwrap_or_default(),
            None => "",
        };
        let value = value.trim_matches(['"', '\'']);
        option_with_value(reading, option, value, origin);
    }
}

/// A short option without the switches in front of it: `-r` of `-qUr`; `-q` for switches alone.
pub(super) fn without_switches(option: &str) -> String {
    let group = option.strip_prefix('-').filter(|rest| !rest.starts_with('-') && !rest.is_empty());
    match group.map(|rest| rest.trim_start_matches(['q', 'U', 'v', 'I'])) {
        Some("") => "-q".to_owned(),
        Some(kept) => format!("-{kept}"),
        None => option.to_owned(),
    }
}

/// Whether an option of pip or `uv pip` has a value behind it, where it stands in a command.
pub(super) fn takes_value(option: &str) -> bool {
    const WITH: [&str; 37] = [
        "-r",
        "-c",
        "-i",
        "-f",
        "-e",
        "-t",
        "-p",
        "--requirement",
        "--requirements",
        "--constraint",
        "--constraints",
        "--index-url",
        "--extra-index-url",
        "--find-links",
        "--editable",
        "--target",
        "--prefix",
        "--root",
        "--platform",
        "--python-version",
        "--python",
        "--index",
        "--default-index",
        "--torch-backend",
        "--only-binary",
        "--no-binary",
        "--progress-bar",
        "--config-settings",
        "--global-option",
        "--trusted-host",
        "--timeout",
        "--root-user-action",
        "-w",
        "-d",
        "--wheel-dir",
        "--dest",
        "--directory",
    ];
    WITH.contains(&option)
        || ["--default-timeout", "--retries", "--proxy", "--cert", "--cache-dir", "--upgrade-strategy"]
            .contains(&option)
}

/// Whether an option of pip or `uv pip` has no value.
pub(super) fn stands_alone(option: &str) -> bool {
    const ALONE: [&str; 27] = [
        "--pre",
        "--no-index",
        "--require-hashes",
        "--prefer-binary",
        "--no-deps",
        "--upgrade",
        "-U",
        "--no-cache-dir",
        "--user",
        "--no-build-isolation",
        "--break-system-packages",
        "--quiet",
        "-q",
        "--system",
        "--force-reinstall",
        "--verbose",
        "-v",
        "--no-cache",
        "--ignore-installed",
        "-I",
        "--disable-pip-version-check",
        "--no-input",
        "--no-use-pep517",
        "--no-warn-script-location",
        "--no-color",
        "-qq",
        "--compile-bytecode",
    ];
    ALONE.contains(&option)
}

fn option_with_value(reading: &mut Reading, option: &str, value: &str, origin: &Origin) {
    let written = format!("{option} {value}");
    let why = match option {
        "-r" | "--requirement" | "--requirements" => {
            return reading.includes.push((origin.clone(), value.to_owned()));
        }
        "-c" | "--constraint" | "--constraints" => {
            return reading.constraint_files.push((origin.clone(), value.to_owned()));
        }
        "-i" | "--index-url" | "--extra-index-url" | "-f" | "--find-links" | "--index"
        | "--default-index" => {
            return index(reading, &written, value, origin);
        }
        "-e" | "--editable" if value.starts_with("git+") || value.contains("://") => {
            "a repository: it has no file that a hash could pin; build its wheel (`pip wheel`) and give it with `--wheel FILE`"
        }
        "-e" | "--editable" => {
            "the project's own code: it is mounted by `envforge shell`, never part of the image"
        }
        "--hash" => return,
        "--prefer-binary" | "--only-binary" | "--require-hashes" => {
            return reading.keep(
                origin.clone(),
                &written,
                "wheels are taken first, and every one is pinned by hash",
            );
        }
        "--no-cache-dir"
        | "--upgrade"
        | "-U"
        | "--user"
        | "--break-system-packages"
        | "--quiet"
        | "-q"
        | "--system"
        | "--no-cache"
        | "--root-user-action"
        | "--verbose"
        | "-v"
        | "--disable-pip-version-check"
        | "--no-input"
        | "--timeout"
        | "--default-timeout"
        | "--retries"
        | "-w"
        | "-d"
        | "--wheel-dir"
        | "--dest"
        | "--progress-bar" => {
            return reading.keep(
                origin.clone(),
                &written,
                "about pip's own run; envforge installs what is locked, without pip's cache",
            );
        }
        "--pre" => "pre-releases are taken only where a requirement names one",
        "--no-binary"
        | "--no-build-isolation"
        | "--config-settings"
        | "--global-option"
        | "--no-use-pep517" => "builds from source are allowed by name: `allow-source = [\"NAME\"]`",
        "--torch-backend" => return torch_backend(reading, value, origin),
        "--no-deps" => "dependencies are always resolved",
        "--trusted-host" => "certificates are always checked; a company's goes into `SSL_CERT_FILE`",
        _ => "this option has no counterpart",
    };
    reading.leave(origin.clone(), &written, why);
}

/// `uv pip install --torch-backend=cu128`.
pub(super) fn torch_backend(reading: &mut Reading, value: &str, origin: &Origin) {
    match value.parse() {
        Ok(cuda) => reading.cuda.push(CudaFact {
            origin: origin.clone(),
            cuda,
            strength: Strength::Index,
            by: format!("--torch-backend {value}"),
        }),
        Err(_) => {
            reading.leave(origin.clone(), &format!("--torch-backend {value}"), "the matrix chooses the CUDA");
        }
    }
}

/// Takes over what the address of an index says.
pub(super) fn index(reading: &mut Reading, written: &str, url: &str, origin: &Origin) {
    match meaning(url) {
        IndexMeaning::Cuda(cuda) => {
            // A page of links of another project: packages that the matrix knows to be there come from it.
            if camino::Utf8Path::new(url).extension() == Some("html") && !has_login(url) {
                reading.indexes.push(IndexSeen { name: name_of(url), url: url.to_owned(), flat: true });
            }
            let by = written.to_owned();
            reading.cuda.push(CudaFact { origin: origin.clone(), cuda, strength: Strength::Index, by });
        }
        IndexMeaning::Nightly(cuda) => {
            reading.cuda.push(CudaFact {
                origin: origin.clone(),
                cuda,
                strength: Strength::Index,
                by: written.to_owned(),
            });
            reading.leave(
                origin.clone(),
                written,
                "an index of nightly builds, which are gone after weeks: releases are taken",
            );
        }
        IndexMeaning::Without(kind) => {
            reading.leave(
                origin.clone(),
                written,
                format!("an index of builds without CUDA (`{kind}`): the image is for NVIDIA GPUs"),
            );
        }
        IndexMeaning::Jetson => reading.leave(origin.clone(), written, JETSON),
        IndexMeaning::OldJax => {
            let why = "JAX's page of earlier builds: releases of the package index are taken";
            reading.keep(origin.clone(), written, why);
        }
        IndexMeaning::OldPyTorch => {
            let why = "PyTorch's page of builds with long-term support, which gets no more of them: releases are taken";
            reading.leave(origin.clone(), written, why);
        }
        IndexMeaning::Default => reading.keep(origin.clone(), written, "an index that is used anyway"),
        IndexMeaning::Foreign(cuda) => {
            let by = written.to_owned();
            reading.cuda.push(CudaFact { origin: origin.clone(), cuda, strength: Strength::Hint, by });
            let what = format!("an index of another project, whose {cuda} is not that of torch");
            further_index(reading, written, (url, &what), origin);
        }
        IndexMeaning::Other => further_index(reading, written, (url, "a further index"), origin),
    }
}

/// Notes an index that the project has to name, if packages come from it.
fn further_index(reading: &mut Reading, written: &str, (url, what): (&str, &str), origin: &Origin) {
    let why = if !url.contains("://") {
        "a folder of this machine: its wheels are given with `--wheel FILE`".to_owned()
    } else if has_login(url) {
        "an index with a login: name it in `[indexes]` of your configuration".to_owned()
    } else {
        let name = name_of(url);
        let is_page = camino::Utf8Path::new(url).extension() == Some("html");
        let format = if is_page { ", format = \"flat\"" } else { "" };
        format!(
            "{what}: if packages come from it, add `indexes = [{{ name = \"{name}\", url = \"{url}\"{format} }}]` to [packages]"
        )
    };
    reading.leave(origin.clone(), written, why);
}

/// Reads a file that `-c` names: versions for packages that are asked for elsewhere.
pub fn constraints_of(file: &str, text: &str) -> Reading {
    let mut reading = from_requirement_lines(file, text);
    reading.constraints = std::mem::take(&mut reading.packages);
    reading
}

/// Both conditions at once.
pub(super) fn both(first: &VersionSpecifiers, second: &VersionSpecifiers) -> VersionSpecifiers {
    let mut all: Vec<_> = first.iter().cloned().collect();
    all.extend(second.iter().filter(|one| !first.contains_specifier(one)).cloned());
    all.into_iter().collect()
}

/// Whether a condition is in a list of them.
trait ContainsSpecifier {
    fn contains_specifier(&self, one: &pep440_rs::VersionSpecifier) -> bool;
}

impl ContainsSpecifier for VersionSpecifiers {
    fn contains_specifier(&self, one: &pep440_rs::VersionSpecifier) -> bool {
        self.iter().any(|own| own == one)
    }
}

fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with('#') {
        return "";
    }
    let tab = line.split_once("\t#").map_or(line, |(before, _)| before);
    tab.split_once(" #").map_or(tab, |(before, _)| before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Reading {
        from_requirement_lines("requirements.txt", text)
    }

    fn names(reading: &Reading) -> Vec<String> {
        reading.packages.iter().map(super::super::reading::Asked::requirement).collect()
    }

    #[test]
    fn unsupported_line_takes_no_other_with_it() {
        let reading = read(
            "--extra-index-url https://download.pytorch.org/whl/cu121\ntorch==2.3.1\n-e .\ngit+https://h/x.git\nnumpy<2  # old\n",
        );
        assert_eq!(names(&reading), ["torch==2.3.1", "numpy<2"]);
        assert_eq!(reading.cuda[0].cuda.to_string(), "cu121");
        let left: Vec<_> = reading.left.iter().map(|note| note.origin.to_string()).collect();
        assert_eq!(left, ["requirements.txt:3", "requirements.txt:4"]);
        assert!(!reading.is_readable_by_lock);
        assert!(read("torch==2.3.1\nnumpy --hash=sha256:00\n-r more.txt\n").is_readable_by_lock);
    }

    #[test]
    fn options_behind_a_requirement_and_packages_behind_an_option_are_told() {
        let reading = read(
            "torch>=2.7.0 --index-url https://download.pytorch.org/whl/cu128\n--extra-index-url https://pypi.nvidia.com/ tensorrt-llm\n",
        );
        assert_eq!(names(&reading), ["torch>=2.7.0"]);
        assert_eq!(reading.cuda[0].cuda.to_string(), "cu128");
        let left: Vec<_> = reading.left.iter().map(|note| note.written.as_str()).collect();
        assert_eq!(left, ["--extra-index-url https://pypi.nvidia.com/", "tensorrt-llm"]);
        assert!(reading.left[0].why.contains("name = \"nvidia\""), "{:?}", reading.left[0]);
    }

    #[test]
    fn several_requirements_on_a_line_are_each_taken() {
        let reading =
            read("torch==2.0.1+cu118 torchvision==0.15.2+cu118\nxformers==0.0.21 bitsandbytes\na b\n");
        assert_eq!(names(&reading), ["torch==2.0.1", "torchvision==0.15.2"]);
        assert!(reading.changed[0].why.contains("which pip refuses"), "{:?}", reading.changed);
        let left: Vec<_> = reading.left.iter().map(|note| note.written.as_str()).collect();
        assert_eq!(left, ["xformers==0.0.21 bitsandbytes", "a b"]);
        assert!(!reading.is_readable_by_lock);
    }

    #[test]
    fn feed_of_onnxruntime_is_its_index_alone() {
        let url = "https://h.test/_packaging/onnxruntime-cuda-12/pypi/simple/";
        let reading = read(&format!("--extra-index-url {url}\nonnxruntime-gpu==1.18.0\ntorch==2.3.1\n"));
        let indexes: Vec<_> = reading.packages.iter().map(|asked| asked.index.as_deref()).collect();
        assert_eq!(indexes, [Some("onnxruntime-cuda"), None]);
        assert_eq!(reading.indexes[0].url, url);
        let other = read("--extra-index-url https://h.test/whl/cu121\nonnxruntime-gpu==1.18.0\n");
        assert_eq!((other.packages[0].index.as_deref(), other.indexes.len()), (None, 0));
    }

    #[test]
    fn index_of_another_project_is_a_hint() {
        let reading = read("--extra-index-url https://abetlen.github.io/llama-cpp-python/whl/cu125\n");
        assert_eq!(reading.cuda[0].strength, Strength::Hint);
        let why = &reading.left[0].why;
        assert!(why.starts_with("an index of another project") && why.contains("name = \"github\""), "{why}");
        let lts = read("-f https://download.pytorch.org/whl/lts/1.8/torch_lts.html\n");
        assert!(lts.kept.is_empty() && lts.left[0].why.contains("long-term"), "{:?}", lts.left);
    }

    #[test]
    fn table_of_pip_list_is_one_line() {
        let reading = read("Package    Version\n---------- -------\ntorch      2.3.1\nnumpy      1.26.4\n");
        assert!(reading.packages.is_empty() && reading.left.len() == 1, "{reading:?}");
        assert!(reading.left[0].why.contains("pip freeze > requirements.txt"), "{:?}", reading.left);
    }

    #[test]
    fn logins_are_not_repeated() {
        let reading = read("--index-url https://user:hunter2@wheels.example.com/simple\n");
        assert!(!format!("{:?}", reading.left).contains("hunter2"), "{:?}", reading.left);
        assert!(reading.left[0].why.contains("[indexes]"));
    }

    #[test]
    fn files_it_names_are_for_the_reader_of_the_folder() {
        let reading = read("-r base.txt\n-rmore.txt\n--requirement=third.txt\n-c limits.txt\n");
        let files: Vec<_> = reading.includes.iter().map(|(_, file)| file.as_str()).collect();
        assert_eq!(files, ["base.txt", "more.txt", "third.txt"]);
        assert_eq!(reading.constraint_files[0].1, "limits.txt");
    }
}
