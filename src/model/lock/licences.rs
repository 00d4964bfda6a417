//! Restrictive licences of the locked wheels: the product's own, and those of products that a user installs as packages.

use crate::model::compat::Matrix;

use super::types::Lock;

impl Lock {
    /// Returns the packages whose licence restricts whom they may be passed on to, with its name. The product's is the lock's own record:
    /// the matrix may have changed since.
    pub fn restrictive_licences<'a>(&'a self, matrix: &'a Matrix) -> Vec<(&'a str, &'a str)> {
        let of_matrix = |name: &str| {
            let product = matrix.products.iter().find(|product| {
                let rows = matrix.variants.iter().filter(|row| row.framework == product.framework);
                let own = rows.filter_map(|row| row.package.as_ref()).chain(&product.package);
                let mut packages = own.chain(&product.licence_covers);
                product.licence.is_some() && packages.any(|package| package == name)
            });
            product.and_then(|product| product.licence.as_deref())
        };
        let own = self.stack.licence.as_deref().map(|licence| (self.stack.package.as_str(), licence));
        let others = self.wheels.iter().map(|wheel| wheel.name.as_str());
        let others = others.filter(|name| own.is_none_or(|(package, _)| package != *name));
        let others = others.filter_map(|name| Some((name, of_matrix(name)?)));
        own.into_iter().chain(others).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::model::lock::sample;

    #[test]
    fn licence_follows_the_locked_wheels() {
        let mut lock = sample::lock();
        assert_eq!(lock.restrictive_licences(crate::model::compat::embedded()), []);
        lock.wheels.push(lock.wheels[0].clone());
        "tensorrt".clone_into(&mut lock.wheels[1].name);
        let found = lock.restrictive_licences(crate::model::compat::embedded());
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, "tensorrt");
        assert!(found[0].1.contains("NVIDIA TensorRT"), "{found:?}");
        // Its libraries are packages of their own.
        for package in ["tensorrt-cu12-libs", "tensorrt-cu13-libs"] {
            let mut lock = lock.clone();
            package.clone_into(&mut lock.wheels[1].name);
            let found = lock.restrictive_licences(crate::model::compat::embedded());
            assert_eq!(found.iter().map(|(name, _)| *name).collect::<Vec<_>>(), [package]);
        }
        // A record of the lock is not replaced.
        lock.stack.licence = Some("Agreement".to_owned());
        assert_eq!(lock.restrictive_licences(crate::model::compat::embedded())[0], ("torch", "Agreement"));
        "tensorrt".clone_into(&mut lock.stack.package);
        assert_eq!(lock.restrictive_licences(crate::model::compat::embedded()), [("tensorrt", "Agreement")]);
    }
}
