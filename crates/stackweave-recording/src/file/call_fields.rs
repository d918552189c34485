//! Calls in files: one word of the process becomes two frames.

use std::borrow::Cow;

use stackweave_core::{EventKind, Field, FieldType};

/// Returns the kind as a file declares it, with two frames for a call. Returns `None` if either form breaks the rules for fields,
/// or if the kind has more than one call.
pub(crate) fn kind_in_file(kind: &EventKind) -> Option<Cow<'_, EventKind>> {
    if !kind.is_valid() {
        return None;
    }
    let Some(index) = kind.position_of(FieldType::Call) else { return Some(Cow::Borrowed(kind)) };
    let mut fields = kind.fields.to_vec();
    let two = [Field::new("frame", FieldType::Frame), Field::new("caller", FieldType::Frame)];
    fields.splice(index..=index, two);
    let kind = EventKind { name: kind.name.clone(), role: kind.role, fields: fields.into() };
    (kind.is_valid() && kind.position_of(FieldType::Call).is_none()).then_some(Cow::Owned(kind))
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
    fn a_call_is_replaced_by_two_frames() {
        use FieldType::{Bytes, Call, Frame, Unsigned};
        let types = |kind: &EventKind| kind.fields.iter().map(|field| field.field_type).collect::<Vec<_>>();
        let (with_call, plain) = (kind(&[Unsigned, Call, Bytes]), kind(&[Frame, Unsigned]));
        let written = kind_in_file(&with_call).unwrap();
        assert_eq!(types(&written), [Unsigned, Frame, Frame, Bytes]);
        assert_eq!((&*written.fields[1].name, &*written.fields[2].name), ("frame", "caller"));
        assert_eq!(kind_in_file(&plain).as_deref(), Some(&plain));
    }

    #[test]
    fn invalid_kinds_are_rejected() {
        use FieldType::{Bytes, Call, Frame, Unsigned};
        assert_eq!(kind_in_file(&kind(&[Call, Call])), None);
        assert_eq!(kind_in_file(&kind(&[Bytes, Frame])), None);
        let mut many = vec![Unsigned; EventKind::MAX_FIELDS - 1];
        many.push(Call);
        assert_eq!(kind_in_file(&kind(&many)), None);
    }
}
