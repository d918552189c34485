//! Enums whose variants are words.

/// Declares an enum without fields, each variant with its words: `ALL` lists the variants, `as_str` and `Display` return their words.
///
/// ```
/// stackweave_core::words! {
///     /// The state of a door.
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub enum Door {
///         /// It is open.
///         Open => "open",
///         /// It is closed.
///         Closed => "closed",
///     }
/// }
/// assert_eq!(Door::ALL, [Door::Open, Door::Closed]);
/// assert_eq!(Door::Closed.to_string(), "closed");
/// ```
#[macro_export]
macro_rules! words {
    ($(#[$about:meta])* pub enum $name:ident {
        $($(#[$of:meta])* $variant:ident $(= $number:literal)? => $words:literal,)+
    }) => {
        $(#[$about])*
        pub enum $name {
            $($(#[$of])* $variant $(= $number)?,)+
        }

        impl $name {
            /// Every variant, in the order of their numbers.
            pub const ALL: [Self; [$($words),+].len()] = [$(Self::$variant),+];

            /// Returns the words of the variant.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $words,)+
                }
            }
        }

        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
