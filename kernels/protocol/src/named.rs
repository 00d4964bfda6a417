//! Enums whose variants have one stable name each.

/// Declares an enum with `ALL`, `as_str` and `parse`.
macro_rules! named {
    ($(#[$doc:meta])* $type:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type { $($(#[$variant_doc])* $variant,)* }

        impl $type {
            /// Every variant, in order.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The stable name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The variant with that name.
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == name)
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

pub(crate) use named;
