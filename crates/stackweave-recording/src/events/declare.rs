//! How a family of events is declared.

use stackweave_core::EventKind;

/// Kinds of events that belong together.
#[derive(Clone, Debug)]
pub struct Family {
    /// What they are about, in a word or two.
    pub name: &'static str,
    /// Its kinds, in the order in which they are declared.
    pub kinds: Vec<DeclaredKind>,
}

/// A kind of events as it is declared.
#[derive(Clone, Debug)]
pub struct DeclaredKind {
    /// Its name, its role and its fields, as the process that records has them.
    pub kind: EventKind,
    /// What it means, in a sentence.
    pub about: &'static str,
}

/// Declares the kinds of a family: a constant for each, and the function `family` that lists them.
macro_rules! family {
    ($family:literal { $($(#[doc = $doc:literal])+ $name:ident = $text:literal: $role:ident($($field:ident),*);)* }) => {
        $($(#[doc = $doc])+
        pub const $name: stackweave_core::EventKind = stackweave_core::EventKind::new(
            $text,
            stackweave_core::Role::$role,
            const { &[$(crate::events::fields::$field),*] },
        );)*

        /// Returns the kinds that are declared here.
        pub(super) fn family() -> crate::events::declare::Family {
            let kinds = vec![$(crate::events::declare::DeclaredKind { kind: $name, about: concat!($($doc),+) }),*];
            crate::events::declare::Family { name: $family, kinds }
        }
    };
}

pub(super) use family;
