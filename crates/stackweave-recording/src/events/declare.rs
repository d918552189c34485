//! The declaration of a family of events.

use stackweave_core::EventKind;

/// A group of related kinds of events.
#[derive(Clone, Debug)]
pub struct Family {
    /// The subject of the events, in a word or two.
    pub name: &'static str,
    /// The kinds of the family, in the order of their declaration.
    pub kinds: Vec<DeclaredKind>,
}

/// The declaration of a kind of events.
#[derive(Clone, Debug)]
pub struct DeclaredKind {
    /// The name, role and fields of the kind, as the recording process registers them.
    pub kind: EventKind,
    /// Its meaning, in a sentence.
    pub about: &'static str,
}

/// Declares the kinds of a family: a constant for each, and the function `family` that returns them.
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
