//! Names of routes.

use std::fmt;

/// With its length, a name of so many bytes takes as much memory as a `String` itself.
const SHORT: usize = 22;

/// The name of a route: the outermost frame of its requests' stacks.
///
/// Any string makes one. A short one is kept in place: every request makes a label, and
/// to allocate would cost more than all the rest of it.
#[derive(Clone)]
pub struct Label(Text);

#[derive(Clone)]
enum Text {
    Static(&'static str),
    Short(u8, [u8; SHORT]),
    Long(Box<str>),
}

impl Label {
    /// A copy of `name`, in place if it is short.
    pub fn new(name: &str) -> Self {
        Label::concat(&[name])
    }

    /// The parts, one after the other.
    pub(crate) fn concat(parts: &[&str]) -> Self {
        let mut bytes = [0; SHORT];
        let mut length = 0;
        for part in parts {
            let end = length + part.len();
            let Some(place) = bytes.get_mut(length..end) else {
                return Label(Text::Long(parts.concat().into()));
            };
            place.copy_from_slice(part.as_bytes());
            length = end;
        }
        // At most `SHORT`.
        Label(Text::Short(u8::try_from(length).unwrap_or(0), bytes))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Static(text) => text,
            // UTF-8, since whole strings were put there.
            Text::Short(..) => std::str::from_utf8(self.as_bytes()).unwrap_or_default(),
            Text::Long(text) => text,
        }
    }

    /// The name, not checked to be UTF-8.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Text::Static(text) => text.as_bytes(),
            Text::Short(length, bytes) => &bytes[..usize::from(*length)],
            Text::Long(text) => text.as_bytes(),
        }
    }
}

impl From<&'static str> for Label {
    fn from(text: &'static str) -> Self {
        Label(Text::Static(text))
    }
}

impl From<String> for Label {
    fn from(text: String) -> Self {
        Label(Text::Long(text.into()))
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_same_in_place_and_out_of_it() {
        for path in [
            "/",
            "/read",
            "/eighteen-letters",
            "/more-than-will-fit-in-place",
        ] {
            let name = format!("GET {path}");
            assert_eq!(Label::concat(&["GET", " ", path]).as_str(), name);
            assert_eq!(Label::from(name.clone()).as_str(), name);
        }
        let exactly = "a".repeat(SHORT);
        let label = Label::new(&exactly);
        assert!(matches!(label.0, Text::Short(22, _)));
        assert_eq!(label.as_str(), exactly);
        assert_eq!(size_of::<Label>(), size_of::<String>());
    }
}
