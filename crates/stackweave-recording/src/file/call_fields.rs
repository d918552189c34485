//! Calls in files: two frames in the place of one word.

use std::borrow::Cow;

use stackweave_core::{EventKind, Field, FieldType};

/// The kind as a file declares it, where a call is two frames. `None` if it breaks the rules for fields, there or here, or
/// has more than one call.
pub(crate) fn in_file(kind: &EventKind) -> Option<Cow<'_, EventKind>> {
    if !kind.is_sound() {
        return None;
    }
    let Some(place) = kind.position_of(FieldType::Call) else { return Some(Cow::Borrowed(kind)) };
    let mut fields = kind.fields.to_vec();
    let two = [Field::new("frame", FieldType::Frame), Field::new("caller", FieldType::Frame)];
    fields.splice(place..=place, two);
    let kind = EventKind { name: kind.name.clone(), role: kind.role, fields: fields.into() };
    (kind.is_sound() && kind.position_of(FieldType::Call).is_none()).then_some(Cow::Owned(kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackweave_core::Role;

    fn kind(fields: &[FieldType]) -> EventKind {
        let fields = fields.iter().map(|of| Field::new("x", *of)).collect::<Vec<_>>();
        EventKind { name: "kind".into(), role: Role::Begin, fields: fields.into() }
    }

    #[test]
    fn a_call_is_two_frames_in_its_place() {
        use FieldType::{Bytes, Call, Frame, Unsigned};
        let types = |kind: &EventKind| kind.fields.iter().map(|field| field.of).collect::<Vec<_>>();
        let (asked, plain) = (kind(&[Unsigned, Call, Bytes]), kind(&[Frame, Unsigned]));
        let told = in_file(&asked).unwrap();
        assert_eq!(types(&told), [Unsigned, Frame, Frame, Bytes]);
        assert_eq!((&*told.fields[1].name, &*told.fields[2].name), ("frame", "caller"));
        assert_eq!(in_file(&plain).as_deref(), Some(&plain));
    }

    #[test]
    fn what_would_break_the_rules_is_refused() {
        use FieldType::{Bytes, Call, Frame, Unsigned};
        assert_eq!(in_file(&kind(&[Call, Call])), None);
        assert_eq!(in_file(&kind(&[Bytes, Frame])), None);
        let mut many = vec![Unsigned; EventKind::MAX_FIELDS - 1];
        many.push(Call);
        assert_eq!(in_file(&kind(&many)), None);
    }
}
