//! What is installed, rule by rule. Each expectation is what uv 0.13.9 does.

use super::*;
use crate::assemble::made_wheel::{MadeEntry, MadeWheel};
use crate::assemble::samples::{SITE, at, install, reasons, text};

fn demo() -> MadeWheel {
    MadeWheel::new("demo").file("demo/a.py", b"x=1\n")
}

/// Paths below `/opt/env` with modes; directories end with `/`.
fn listed(made: &MadeWheel) -> Vec<String> {
    let installed = install(made).expect("installed");
    let name = |file: &InstalledFile| {
        let end = if file.content == InstalledContent::Folder { "/" } else { "" };
        let path = file.path.strip_prefix("opt/env/").expect("below the environment");
        format!("{:o} {}{end}", file.mode, path.replace("lib/python3.11/site-packages", "SITE"))
    };
    installed.files().iter().map(name).filter(|path| !path.contains(".dist-info")).collect()
}

#[test]
fn files_and_directories_of_every_scheme_are_installed() {
    let made = demo()
        .data("data/share/x", b"")
        .data("headers/s/h.h", b"")
        .data("purelib/pl/x.py", b"")
        .data("platlib/pl/y.py", b"")
        .data("data/empty/", b"")
        .file("empty/in/", b"");
    assert_eq!(
        listed(&made),
        [
            "755 empty/",
            "644 include/site/python3.11/demo/s/h.h",
            "644 SITE/demo/a.py",
            "755 SITE/empty/in/",
            "644 SITE/pl/x.py",
            "644 SITE/pl/y.py",
            "644 share/x",
        ]
    );
}

#[test]
fn only_execute_bits_of_modes_survive() {
    let file = |name: &str, mode| MadeEntry::new(name, b"").mode(mode);
    let made = MadeWheel::new("demo")
        .entry(file("a", 0o100_666))
        .entry(file("b", 0o100_600))
        .entry(file("c", 0o100_010))
        .entry(file("d", 0o100_775))
        .entry(file("e", 0))
        // A symbolic link of the zip becomes a file with its target as text, in uv as well.
        .entry(MadeEntry::new("f", b"../target").mode(0o120_777))
        .entry(file("g", 0o100_444).stored());
    let modes =
        ["644 SITE/a", "644 SITE/b", "755 SITE/c", "755 SITE/d", "644 SITE/e", "755 SITE/f", "644 SITE/g"];
    assert_eq!(listed(&made), modes);
}

#[test]
fn scripts_get_the_interpreter_and_execute_bits() {
    let made = demo()
        .data("scripts/one", b"#!python\nx\n")
        .data("scripts/options", b"#!python3.8 -u\nx\n")
        .data("scripts/window", b"#!pythonw -x\r\nx\r\n")
        .data("scripts/cr", b"#!python\rx\n")
        .data("scripts/no_line", b"#!python")
        .data("scripts/short", b"#!")
        .data("scripts/sh", b"#!/bin/sh\n")
        .data("scripts/absolute", b"#!/usr/bin/python\nx");
    let installed = install(&made).expect("installed");
    let found = |name: &str| {
        let path = format!("opt/env/bin/{name}");
        let file = installed.files().iter().find(|file| file.path == path).expect(name);
        assert_eq!(file.mode, 0o755, "{name}");
        match &file.content {
            InstalledContent::Generated(bytes) => String::from_utf8(bytes.clone()).expect("UTF-8"),
            InstalledContent::FromWheel { .. } => "as it is".to_owned(),
            InstalledContent::Folder => panic!("{name}"),
        }
    };
    for (name, expected) in [
        ("one", "#!/opt/env/bin/python\nx\n"),
        ("options", "#!/opt/env/bin/python\nx\n"),
        ("window", "#!/opt/env/bin/python\nx\r\n"),
        ("cr", "#!/opt/env/bin/python\nx\n"),
        ("no_line", "#!/opt/env/bin/python\n"),
        ("short", "as it is"),
        ("sh", "as it is"),
        ("absolute", "as it is"),
    ] {
        assert_eq!(found(name), expected, "{name}");
    }
    let record = text(&installed, "demo-1.0.dist-info/RECORD");
    // Hash and size are of the rewritten script.
    assert!(
        record.contains("../../../bin/one,sha256=HpoSfOaNScmh2fba6IJnSJWpfrWw9DgKA6DuP653jS0,24\n"),
        "{record}"
    );
    assert!(
        record.contains("../../../bin/short,sha256=NhLdr0bhSaT1g_rw-s6EZYUUj1ngziZFWU34O13IB-g,2\n"),
        "{record}"
    );
}

#[test]
fn entry_points_replace_scripts_of_their_name() {
    let made = MadeWheel::new("demo")
        .info("entry_points.txt", b"[console_scripts]\nep=m:f\ntwice=m:g\n[gui_scripts]\ntwice=m:h\n")
        .data("scripts/ep", b"1")
        .data("scripts/ep.exe", b"2")
        .data("scripts/ep-script.py", b"#!python\n")
        .data("scripts/ep.py", b"4");
    assert_eq!(listed(&made), ["755 bin/ep", "755 bin/ep.py", "755 bin/twice"]);
    let installed = install(&made).expect("installed");
    insta::assert_snapshot!(text(&installed, "demo-1.0.dist-info/RECORD"), @r"
    ../../../bin/ep,sha256=7xIzOJBK2Y43kQZbb2imUjyjjDti_J3ECl-7_F4dkvc,280
    ../../../bin/ep.py,sha256=SyJ3d9TdH8Ycb4hPSGQdArTRIdP9Moywi1Ux_Kzav4o,1
    ../../../bin/twice,sha256=8OQhaR2prd16SWuVggH_s4tUD22WcLLVeyvI_TLJg3k,280
    ../../../bin/twice,sha256=C0fpNPXb3b2bDMwrVkFLmBxcrQSf_LGl4jvRJjEGmEo,280
    demo-1.0.data/scripts/ep,sha256=a4ayc_80_OGda4BO_1o_V0etpOqiLx1JwB5S3beHW0s,1
    demo-1.0.data/scripts/ep-script.py,sha256=NKJyCC0fONcaYytG9mysca37TZf8wBDISvRNAW-78pQ,9
    demo-1.0.data/scripts/ep.exe,sha256=1HNeOiZeFu7gP1lxi5tdAwGcB9i2xR-Q2jpmbuwTqzU,1
    demo-1.0.dist-info/METADATA,sha256=NKonpgZPlYtBt4GiF_KQ_Qq1-WUeK25Kzas0G3uTwwU,46
    demo-1.0.dist-info/RECORD,,
    demo-1.0.dist-info/WHEEL,sha256=8Ml0OOHVZfmERMwCxg1p8l2WVGQh0o5XgouCJpAUF0U,76
    demo-1.0.dist-info/entry_points.txt,sha256=SWNxdI4zolsGz7AkPkfSzxJRH2AolnXhqgs6wTUR8Tc,59
    ");
    let twice = installed.files().iter().find(|file| file.path == "opt/env/bin/twice").expect("a script");
    assert!(
        matches!(&twice.content, InstalledContent::Generated(text) if text.ends_with(b"sys.exit(h())\n"))
    );
}

#[test]
fn record_is_healed_and_its_mode_stays() {
    let made = demo().info("RECORD.jws", b"signature").record("/demo/a.py,,\r\ngone.py,sha256=x,1\r\n");
    let installed = install(&made).expect("installed");
    insta::assert_snapshot!(text(&installed, "demo-1.0.dist-info/RECORD"), @r"
    demo-1.0.dist-info/METADATA,,46
    demo-1.0.dist-info/RECORD,,34
    demo-1.0.dist-info/WHEEL,,76
    demo/a.py,,
    ");
    assert_eq!(at(&installed, "demo-1.0.dist-info/RECORD.jws").mode, 0o644);
    let mut entries = demo().all_entries();
    let record = entries.pop().expect("RECORD").mode(0o100_755);
    let made = MadeWheel { entries: entries.clone(), ..demo() };
    let bytes = crate::assemble::made_wheel::zip_of(&[made.entries, vec![record]].concat(), b"", false);
    let wheel = crate::assemble::samples::open_bytes("demo", &bytes).expect("a wheel");
    let installed = Installation::of(Arc::new(wheel), 11).expect("installed");
    assert_eq!(at(&installed, "demo-1.0.dist-info/RECORD").mode, 0o755);
}

#[test]
fn files_carry_the_hash_of_record() {
    let sha256 = |installation: &Installation, path| match at(installation, path).content {
        InstalledContent::FromWheel { sha256, .. } => sha256,
        _ => panic!("{path}"),
    };
    let installed = install(&demo()).expect("installed");
    assert_eq!(sha256(&installed, "demo/a.py"), Some(Sha256::digest(b"x=1\n").into()));
    let installed = install(&demo().record("demo/a.py,sha512=x,\n")).expect("installed");
    assert_eq!(sha256(&installed, "demo/a.py"), None);
}

#[test]
fn files_that_differ_from_record_are_refused() {
    let other = "sha256=mHUu4o1UhL3CgU-3CttqCy-zH2qbjueugf0vyc8wCzs";
    assert_eq!(reasons(&demo().record("demo/a.py,,5\n")), ["`demo/a.py`: the size differs from RECORD"]);
    assert_eq!(
        reasons(&demo().record("demo/a.py,sha256=x,4\n")),
        ["`demo/a.py`: RECORD lists an invalid SHA-256"]
    );
    assert_eq!(reasons(&demo().record("demo/a.py\n")), ["RECORD: line 1 is not `path,hash,size`"]);
    let script =
        demo().data("scripts/x", b"#!python\n").record(&format!("demo-1.0.data/scripts/x,{other},9\n"));
    assert_eq!(reasons(&script), ["`demo-1.0.data/scripts/x`: the SHA-256 differs from RECORD"]);
}

#[test]
fn wheels_that_uv_cannot_install_are_refused_with_every_reason() {
    let made = demo()
        .info("entry_points.txt", b"[console_scripts]\npython=m:f\nx\n")
        .data("other/x", b"")
        .data("x", b"")
        .data("scripts/d/x", b"")
        .data("scripts/python3", b"")
        .data("data/pyvenv.cfg", b"")
        .data("data/lib64", b"");
    assert_eq!(
        reasons(&made),
        [
            "entry_points.txt: neither option nor section in line 3",
            "`demo-1.0.data/other/x`: unknown directory of wheel data",
            "`demo-1.0.data/x`: unknown directory of wheel data",
            "`demo-1.0.data/scripts/d/x`: it is a directory of scripts",
            "`demo-1.0.data/scripts/python3`: the name is reserved for the interpreter",
            "`demo-1.0.data/data/pyvenv.cfg`: the file belongs to the environment",
            "`demo-1.0.data/data/lib64`: the file belongs to the environment",
        ]
    );
    let named = demo().info("entry_points.txt", b"[console_scripts]\npython=m:f\na/b=m:f\n");
    assert_eq!(
        reasons(&named),
        [
            "script name `python` is reserved for the interpreter",
            "entry_points.txt: invalid script name `a/b`"
        ]
    );
}

#[test]
fn entries_with_one_target_are_refused() {
    let same = demo().data("purelib/demo/a.py", b"x=1\n");
    assert_eq!(reasons(&same), [format!("`{SITE}/demo/a.py`: 2 entries have this name")]);
    let folder = demo().data("purelib/demo/a.py/b", b"");
    assert_eq!(reasons(&folder), [format!("`{SITE}/demo/a.py`: it is a file and a directory")]);
    let script = demo().info("entry_points.txt", b"[console_scripts]\nx=m:f\n").data("data/bin/x", b"");
    assert_eq!(reasons(&script), ["`opt/env/bin/x`: 2 entries have this name"]);
    install(&demo().data("purelib/demo/", b"").file("demo/", b"")).expect("directories may be listed twice");
}

#[test]
fn unsupported_wheel_versions_are_refused() {
    let with = |text: &str| demo().without("demo-1.0.dist-info/WHEEL").info("WHEEL", text.as_bytes());
    for (text, found) in [
        ("Wheel-Version: 2.0\n", "2.0"),
        ("", ""),
        ("\nWheel-Version: 1.0\n", ""),
        ("Wheel-Version: 1\n", "1"),
    ] {
        assert_eq!(reasons(&with(text)), [format!("unsupported wheel version `{found}`")], "{text:?}");
    }
    for text in ["Wheel-Version: 1.9\r\n", "Generator: x\nWheel-Version:0.1\n"] {
        install(&with(text)).expect(text);
    }
}

#[test]
fn damaged_entries_that_decide_are_refused() {
    let broken = MadeEntry { crc32: 1, ..MadeEntry::new("demo-1.0.data/scripts/x", b"#!python\n") };
    assert_eq!(reasons(&demo().entry(broken)), ["`demo-1.0.data/scripts/x`: CRC-32 mismatch"]);
}
