//! Turns arguments into requests.

/// Turns the arguments of a verb into its request, field by field: a field that is forgotten does not compile.
macro_rules! into_request {
    ($args:ident => $request:ident { $($field:ident),* $(,)? }) => {
        impl From<$args> for crate::model::request::$request {
            fn from(args: $args) -> Self {
                let $args { $($field),* } = args;
                Self { $($field: $field.into()),* }
            }
        }
    };
}
