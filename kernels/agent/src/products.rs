//! The scripts of products: `facts` says without a GPU what the product is, `kernel` runs one of its own kernels on one.

/// Name of the product's module and text of its script, by name.
const SCRIPTS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/products.rs"));

/// What the scripts share on a GPU.
const RUNNER: &str = include_str!("python/product_gpu.py");

/// Returns the names of the products that have a script.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    SCRIPTS.iter().map(|(name, _)| *name)
}

/// Returns the script of a product.
pub(crate) fn script(name: &str) -> Option<&'static str> {
    SCRIPTS.iter().find(|(known, _)| *known == name).map(|(_, script)| *script)
}

/// Returns the program that runs the product's kernel, if it has a script.
pub(crate) fn program(name: &str) -> Option<String> {
    Some(format!("{RUNNER}{}\nrun(kernel)\n", script(name)?))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use envforge_protocol::SkipReason;

    use super::*;

    #[test]
    fn scripts_are_python_with_facts_and_a_compared_kernel() {
        assert!(names().is_sorted() && names().count() > 0);
        for name in names() {
            let script = script(name).expect("listed");
            for part in ["def facts():", "say(\"version\", ", "def kernel():", "need("] {
                assert!(script.contains(part), "{name}: {part}");
            }
            let says_cuda = ["attempt(\"cuda\", ", "of_torch("].iter().any(|part| script.contains(part));
            assert!(says_cuda, "{name}");
            let program = program(name).expect("listed");
            let parse = "import ast,sys; ast.parse(sys.argv[1])";
            if let Ok(status) = Command::new("python3").args(["-c", parse, &program]).status() {
                assert!(status.success(), "{name}");
            }
            for call in script.split("raise SkipCheck(").skip(1) {
                let reason = call.strip_prefix('"').and_then(|rest| rest.split_once('"'));
                assert!(
                    reason.is_some_and(|(reason, _)| SkipReason::parse(reason).is_some()),
                    "{name}: {call:.40}"
                );
            }
        }
    }

    #[test]
    fn unknown_product_has_no_script() {
        assert_eq!((script("torch"), program("torch")), (None, None));
    }
}
