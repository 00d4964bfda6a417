//! Manifests of Kubernetes: as much of YAML as those of this repository use, and the fields that they may have.

use serde_json::{Map, Value};

/// A line without its indentation; `- x` is two of them.
struct Line {
    indent: usize,
    text: String,
    /// The lines of a block that `|` announces.
    literal: Option<String>,
}

/// The documents of a file.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    let document = |text: &str| {
        let lines = lines(text);
        let mut at = 0;
        let value = block(&lines, &mut at);
        assert_eq!(at, lines.len(), "not read to its end: {text}");
        value
    };
    text.split("\n---\n").map(document).collect()
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn lines(text: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut raw = text.lines().peekable();
    while let Some(line) = raw.next() {
        let (mut indent, mut text) = (indent_of(line), line.trim());
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        while let Some(rest) = text.strip_prefix("- ") {
            found.push(Line { indent, text: "-".to_owned(), literal: None });
            (indent, text) = (indent + 2, rest);
        }
        let literal = text.ends_with(": |").then(|| {
            let mut literal = String::new();
            while let Some(next) =
                raw.next_if(|next| next.trim().is_empty() || indent_of(next) > indent_of(line))
            {
                literal += &(next.get(indent_of(line) + 2..).unwrap_or_default().to_owned() + "\n");
            }
            literal
        });
        found.push(Line { indent, text: text.to_owned(), literal });
    }
    found
}

/// The value that begins at that line, with all lines that belong to it.
fn block(lines: &[Line], at: &mut usize) -> Value {
    let indent = lines[*at].indent;
    let belongs = |at: usize| lines.get(at).is_some_and(|line| line.indent == indent);
    if lines[*at].text == "-" {
        let mut items = Vec::new();
        while belongs(*at) {
            assert_eq!(lines[*at].text, "-", "an item of a list");
            *at += 1;
            items.push(block(lines, at));
        }
        return items.into();
    }
    if key_of(&lines[*at].text).is_none() {
        *at += 1;
        return scalar_or_flow(&lines[*at - 1].text);
    }
    let mut fields = Map::new();
    while belongs(*at) {
        let line = &lines[*at];
        let (key, rest) = key_of(&line.text).expect("a field");
        *at += 1;
        let value: Value = match &line.literal {
            Some(literal) => literal.clone().into(),
            // An anchor names what follows.
            None if rest.is_empty() || rest.starts_with('&') => block(lines, at),
            None => scalar_or_flow(rest),
        };
        assert!(fields.insert(key.to_owned(), value).is_none(), "`{key}` twice");
    }
    fields.into()
}

/// The key of a line, and what follows it.
fn key_of(text: &str) -> Option<(&str, &str)> {
    let (key, rest) = text.split_once(": ").or_else(|| Some((text.strip_suffix(':')?, "")))?;
    let is_key = key.chars().all(|one| one.is_ascii_alphanumeric() || "./-_".contains(one));
    is_key.then_some((key, rest.trim()))
}

fn scalar_or_flow(text: &str) -> Value {
    let (value, rest) = flow(text, "");
    assert!(rest.trim().is_empty() || rest.trim().starts_with('#'), "`{rest}` after a value");
    value
}

/// The value at the beginning of a text, and the rest; a plain word ends before one of `ends`, or a comment.
fn flow<'a>(text: &'a str, ends: &str) -> (Value, &'a str) {
    let text = text.trim_start();
    if let Some(rest) = text.strip_prefix('[') {
        let (mut items, mut rest) = (Vec::new(), rest.trim_start());
        while !rest.starts_with(']') {
            assert!(!rest.is_empty(), "a list without its end");
            let (item, after) = flow(rest, ",]");
            items.push(item);
            rest = after.trim_start().trim_start_matches(',').trim_start();
        }
        return (items.into(), &rest[1..]);
    }
    if let Some(rest) = text.strip_prefix('{') {
        let (mut fields, mut rest) = (Map::new(), rest.trim_start());
        while !rest.starts_with('}') {
            assert!(!rest.is_empty(), "fields without their end");
            let (key, after) = rest.split_once(": ").or_else(|| rest.split_once(':')).expect("a field");
            let (value, after) = flow(after, ",}");
            fields.insert(key.trim().to_owned(), value);
            rest = after.trim_start().trim_start_matches(',').trim_start();
        }
        return (fields.into(), &rest[1..]);
    }
    if text.starts_with('"') {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let value = values.next().expect("a text").expect("a quoted text");
        return (value, &text[values.byte_offset()..]);
    }
    let comment = text.find(" #").unwrap_or(text.len());
    let end = text.find(|one: char| ends.contains(one)).unwrap_or(text.len()).min(comment);
    let word = text[..end].trim();
    let value: Value = match word {
        "true" | "false" => (word == "true").into(),
        _ => word.parse::<u64>().map_or_else(|_| word.into(), Value::from),
    };
    (value, &text[end..])
}

/// The fields of each kind: `name` is a word or a list of words, `name=Kind` a value of that kind or a list of them, `name=*` any words by
/// name, `name=*Kind` values of that kind by any name.
const SCHEMA: &[(&str, &str)] = &[
    ("Kustomization", "apiVersion kind resources"),
    ("ConfigMap", "apiVersion kind metadata=Metadata data=*"),
    ("Job", "apiVersion kind metadata=Metadata spec=JobSpec"),
    ("Deployment", "apiVersion kind metadata=Metadata spec=DeploymentSpec"),
    ("Service", "apiVersion kind metadata=Metadata spec=ServiceSpec"),
    ("JobSet", "apiVersion kind metadata=Metadata spec=JobSetSpec"),
    ("Pod", "apiVersion kind metadata=Metadata spec=PodSpec"),
    ("Metadata", "name generateName labels=*"),
    (
        "JobSpec",
        "parallelism completions completionMode backoffLimit backoffLimitPerIndex activeDeadlineSeconds \
         ttlSecondsAfterFinished template=PodTemplate",
    ),
    ("DeploymentSpec", "replicas strategy=Strategy selector=Selector template=PodTemplate"),
    ("Strategy", "type"),
    ("Selector", "matchLabels=*"),
    ("ServiceSpec", "type selector=* ports=ServicePort"),
    ("ServicePort", "name port targetPort"),
    ("JobSetSpec", "failurePolicy=FailurePolicy network=Network replicatedJobs=ReplicatedJob"),
    ("FailurePolicy", "maxRestarts"),
    ("Network", "enableDNSHostnames"),
    ("ReplicatedJob", "name replicas template=JobTemplate"),
    ("JobTemplate", "spec=JobSpec"),
    ("PodTemplate", "metadata=Metadata spec=PodSpec"),
    (
        "PodSpec",
        "restartPolicy automountServiceAccountToken activeDeadlineSeconds affinity=Affinity tolerations=Toleration \
         securityContext=PodSecurity initContainers=Container containers=Container volumes=Volume",
    ),
    ("Affinity", "nodeAffinity=NodeAffinity podAntiAffinity=PodAntiAffinity"),
    ("NodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution=NodeSelector"),
    ("NodeSelector", "nodeSelectorTerms=NodeTerm"),
    ("NodeTerm", "matchExpressions=Requirement matchFields=Requirement"),
    ("Requirement", "key operator values"),
    ("PodAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution=PodTerm"),
    ("PodTerm", "topologyKey labelSelector=Selector"),
    ("Toleration", "key operator effect"),
    ("PodSecurity", "runAsNonRoot runAsUser runAsGroup fsGroup seccompProfile=Profile"),
    ("Profile", "type"),
    (
        "Container",
        "name image command args workingDir env=Variable ports=ContainerPort readinessProbe=Probe resources=Resources \
         terminationMessagePolicy securityContext=Security volumeMounts=Mount",
    ),
    ("Variable", "name value valueFrom=Source"),
    ("Source", "secretKeyRef=SecretKey"),
    ("SecretKey", "name key"),
    ("ContainerPort", "name containerPort"),
    ("Probe", "tcpSocket=Socket"),
    ("Socket", "port"),
    ("Resources", "limits=*"),
    (
        "Security",
        "allowPrivilegeEscalation capabilities=Capabilities readOnlyRootFilesystem runAsNonRoot runAsUser \
         seccompProfile=Profile",
    ),
    ("Capabilities", "drop"),
    ("Mount", "name mountPath readOnly"),
    ("Volume", "name emptyDir=EmptyDir configMap=Named"),
    ("EmptyDir", "medium sizeLimit"),
    ("Named", "name"),
    // <https://github.com/kubernetes-sigs/node-feature-discovery/blob/master/api/image-compatibility/v1alpha1/spec.go>
    ("ImageCompatibility", "version compatibilities=CompatibilitySet"),
    ("CompatibilitySet", "rules=GroupRule weight tag description"),
    ("GroupRule", "name matchFeatures=FeatureTerm matchAny=Alternative"),
    ("Alternative", "matchFeatures=FeatureTerm"),
    ("FeatureTerm", "feature matchExpressions=*Expression"),
    ("Expression", "op value"),
];

/// What a document has that Kubernetes does not take, by path.
pub(crate) fn misfits(document: &Value) -> Vec<String> {
    misfits_of(document, document["kind"].as_str().expect("a kind"))
}

/// The same for a document that does not name its kind.
pub(crate) fn misfits_of(document: &Value, kind: &str) -> Vec<String> {
    let mut found = Vec::new();
    of_kind(document, kind, kind, &mut found);
    found
}

fn of_kind(value: &Value, kind: &str, path: &str, found: &mut Vec<String>) {
    if let Some(items) = value.as_array() {
        for item in items {
            of_kind(item, kind, path, found);
        }
        return;
    }
    // A reference to an anchor.
    if value.as_str().is_some_and(|text| text.starts_with('*')) {
        return;
    }
    let Some(fields) = value.as_object() else {
        found.push(format!("{path}: {value} is no {kind}"));
        return;
    };
    if let Some(kind) = kind.strip_prefix('*') {
        for (name, value) in fields {
            let path = format!("{path}.{name}");
            if !kind.is_empty() {
                of_kind(value, kind, &path, found);
            } else if value.is_object() || value.is_array() {
                found.push(format!("{path}: not a word"));
            }
        }
        return;
    }
    if kind == "PodSpec" {
        mounts_without_volume(value, found);
    }
    let (_, known) = SCHEMA.iter().find(|(name, _)| *name == kind).expect("a kind of the table");
    for (name, value) in fields {
        let path = format!("{path}.{name}");
        let mut known = known.split_whitespace().map(|field| field.split_once('=').unwrap_or((field, "")));
        match known.find(|(known, _)| *known == name) {
            None => found.push(format!("{path}: no such field")),
            Some((_, "")) => {
                let words = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                if words.iter().any(|word| word.is_object() || word.is_array()) {
                    found.push(format!("{path}: not a word"));
                }
            }
            Some((_, kind)) => of_kind(value, kind, &path, found),
        }
    }
}

fn mounts_without_volume(pod: &Value, found: &mut Vec<String>) {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let volumes: Vec<Value> = list(&pod["volumes"]).iter().map(|volume| volume["name"].clone()).collect();
    for container in [list(&pod["initContainers"]), list(&pod["containers"])].concat() {
        let mounts = list(&container["volumeMounts"]);
        let lost = mounts.iter().filter(|mount| !volumes.contains(&mount["name"]));
        found.extend(lost.map(|mount| format!("{}: no volume {}", container["name"], mount["name"])));
    }
}

/// The words of a field: a list of them.
pub(crate) fn words(value: &Value) -> Vec<String> {
    let items = value.as_array().expect("a list").iter();
    items.map(|item| item.as_str().expect("a word").to_owned()).collect()
}

#[test]
fn manifests_are_read_and_misfits_are_named() {
    let text = "# A pod.\nkind: Pod\nmetadata: &one\n  name: a-1\n  labels: *one\nspec:\n  initContainers:\n    - name: x # y\n      args: [python, -c, \"a: \\\"b\\\", #c\", --n=1:2]\n      limit: 3\n      volumeMounts:\n        - {name: v, mountPath: /v, readOnly: true}\n  containers: []\n---\nkind: ConfigMap\ndata:\n  a.toml: |\n    # b\n    c = [1]\n\n  d: e\n";
    let [pod, map]: [Value; 2] = documents(text).try_into().expect("two documents");
    let container = &pod["spec"]["initContainers"][0];
    assert_eq!(words(&container["args"]), ["python", "-c", "a: \"b\", #c", "--n=1:2"]);
    assert_eq!(container["name"], "x");
    assert_eq!(container["limit"], 3);
    assert_eq!(map["data"]["a.toml"], "# b\nc = [1]\n\n");
    assert_eq!(map["data"]["d"], "e");
    assert_eq!(misfits(&pod), ["\"x\": no volume \"v\"", "Pod.spec.initContainers.limit: no such field"]);
    assert!(misfits(&map).is_empty());
}
