//! Names of routes.

use std::fmt;

/// Longest name in bytes that is kept in place. With its length, it takes as much memory as a `String` itself.
const SHORT: usize = 22;

/// Longest name in bytes; longer ones are cut, since clients may choose a path of any length.
const MAX_BYTES: usize = 128;

/// Name of a route: the outermost frame of its requests' stacks.
///
/// Any string makes one, and 128 bytes of it are kept. A short one is kept in place. Every request
/// makes a label, and an allocation would cost more than all the rest of that.
#[derive(Clone)]
pub struct Label(Text);

#[derive(Clone)]
enum Text {
    Static(&'static str),
    Short(u8, [u8; SHORT]),
    Long(Box<str>),
}

impl Label {
    /// Copies `name`, in place if it is short.
    pub fn new(name: &str) -> Self {
        Label::concat(&[name])
    }

    /// Joins the parts into one label.
    pub(crate) fn concat(parts: &[&str]) -> Self {
        let mut bytes = [0; SHORT];
        let mut length = 0;
        for part in parts {
            let end = length + part.len();
            let Some(place) = bytes.get_mut(length..end) else {
                return Label::long(parts);
            };
            place.copy_from_slice(part.as_bytes());
            length = end;
        }
        // The length is at most `SHORT`, so it fits.
        Label(Text::Short(u8::try_from(length).unwrap_or(0), bytes))
    }

    fn long(parts: &[&str]) -> Self {
        // Cut each part before copying it: it may be of any length.
        let parts: Vec<&str> = parts.iter().map(|part| cut(part)).collect();
        Label(Text::Long(cut(&parts.concat()).into()))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Static(text) => text,
            // It is UTF-8, since only whole strings were put there.
            Text::Short(..) => std::str::from_utf8(self.as_bytes()).unwrap_or_default(),
            Text::Long(text) => text,
        }
    }

    /// Returns the bytes of the name, without a check that they are UTF-8.
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
        Label(Text::Static(cut(text)))
    }
}

impl From<String> for Label {
    fn from(text: String) -> Self {
        Label::new(&text)
    }
}

/// Cuts the text to at most [`MAX_BYTES`].
fn cut(text: &str) -> &str {
    let mut end = text.len().min(MAX_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
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
        for long in ["/é".repeat(1_000_000), "a".repeat(SHORT + 1)] {
            let kept = Label::concat(&["GET ", &long]).as_str().to_owned();
            assert!(kept.len() <= MAX_BYTES && format!("GET {long}").starts_with(&kept));
            assert!(kept.len() + 4 > long.len().min(MAX_BYTES), "{kept}");
        }
        let exactly = "a".repeat(SHORT);
        let label = Label::new(&exactly);
        assert!(matches!(label.0, Text::Short(22, _)));
        assert_eq!(label.as_str(), exactly);
        assert_eq!(size_of::<Label>(), size_of::<String>());
    }
}
