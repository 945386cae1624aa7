//! The files of a machine that has no disk: a cpio archive, which the kernel unpacks into memory.

use std::io::Result;
use std::path::Path;

/// Types and permissions, as `stat` has them.
const FOLDER: usize = 0o040_755;
const PROGRAM: usize = 0o100_755;

/// Writes an archive with these programs at the root.
pub(crate) fn write(archive: &Path, programs: &[(&str, &Path)]) -> Result<()> {
    // The kernel opens `/dev/console` for the first program before it can mount anything. Its own
    // built-in archive has that file.
    let mut bytes = entry(1, "dev", FOLDER, &[]);
    for (number, (name, program)) in (2..).zip(programs) {
        bytes.extend(entry(number, name, PROGRAM, &std::fs::read(program)?));
    }
    bytes.extend(entry(0, "TRAILER!!!", 0, &[]));
    std::fs::write(archive, bytes)
}

/// One file in cpio's "new" format: 13 numbers of eight hexadecimal digits, the name, the bytes, the
/// last two filled up to multiples of four.
fn entry(number: usize, name: &str, mode: usize, bytes: &[u8]) -> Vec<u8> {
    let (size, name_size) = (bytes.len(), name.len() + 1);
    let numbers = [number, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
    let numbers = numbers.map(|number| format!("{number:08x}")).concat();
    let mut entry = format!("070701{numbers}{name}\0").into_bytes();
    entry.resize(entry.len().next_multiple_of(4), 0);
    entry.extend(bytes);
    entry.resize(entry.len().next_multiple_of(4), 0);
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_header_a_name_and_bytes_in_fours() {
        let entry = entry(2, "init", PROGRAM, b"hello");
        assert_eq!(&entry[..22], b"07070100000002000081ed");
        assert_eq!(&entry[110..116], b"init\0\0");
        assert_eq!(&entry[116..], b"hello\0\0\0");
    }
}
