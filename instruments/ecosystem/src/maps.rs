//! Parts of a process's memory, as the kernel lists them: instruments look names of functions up by them.

/// A part of memory, from a line of the list such as `5600-5700 r-xp 00001000 fe:00 42  /bin/shop`.
pub struct Part<'a> {
    /// Its first address.
    pub start: u64,
    /// The address behind it.
    pub end: u64,
    /// `r-xp`: may be read and executed.
    pub permissions: &'a str,
    /// Offset in its file at which it begins.
    pub offset: u64,
    /// Path of the file, or a name in brackets; empty where it has none.
    pub name: &'a str,
}

impl<'a> Part<'a> {
    /// Reads a line of the list.
    pub fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.splitn(6, ' ').map(str::trim);
        let (start, end) = words.next()?.split_once('-')?;
        let number = |hex| u64::from_str_radix(hex, 16).ok();
        Some(Self {
            start: number(start)?,
            end: number(end)?,
            permissions: words.next()?,
            offset: number(words.next()?)?,
            name: words.nth(2).unwrap_or_default(),
        })
    }
}
