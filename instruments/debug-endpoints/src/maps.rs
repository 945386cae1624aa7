//! What lies where in this process's memory, as the kernel lists it.

/// A line of the list, such as `5600-5700 r-xp 00001000 fe:00 42  /bin/shop`.
pub(crate) struct Part<'a> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) permissions: &'a str,
    pub(crate) offset: u64,
    /// Of the file, or in brackets what it is; empty where it is nothing of a name.
    pub(crate) name: &'a str,
}

impl<'a> Part<'a> {
    pub(crate) fn parse(line: &'a str) -> Option<Self> {
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

/// The list; elsewhere than on Linux it is empty.
pub(crate) fn read() -> String {
    std::fs::read_to_string("/proc/self/maps").unwrap_or_default()
}
