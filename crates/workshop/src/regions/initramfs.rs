//! The files of a machine that has no disk: a cpio archive, which the kernel unpacks into memory.

use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::Path;

/// Types and permissions, as `stat` has them.
const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// Writes an archive with these programs at the root.
pub(super) fn write(archive: &Path, programs: &[(&str, &Path)]) -> Result<()> {
    let mut out = BufWriter::new(File::create(archive)?);
    // The kernel opens `/dev/console` for the first program before it can mount anything. Its own
    // built-in archive has that file.
    entry(&mut out, 1, "dev", FOLDER, &[])?;
    for (number, (name, program)) in (2..).zip(programs) {
        entry(&mut out, number, name, PROGRAM, &std::fs::read(program)?)?;
    }
    entry(&mut out, 0, "TRAILER!!!", 0, &[])?;
    out.flush()
}

/// One file in cpio's "new" format: 13 numbers of eight hexadecimal digits, the name, the bytes, the
/// last two filled up to multiples of four.
fn entry(out: &mut impl Write, number: u32, name: &str, mode: u32, bytes: &[u8]) -> Result<()> {
    let size = u32::try_from(bytes.len()).map_err(std::io::Error::other)?;
    let name_size = u32::try_from(name.len() + 1).map_err(std::io::Error::other)?;
    let numbers = [number, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
    out.write_all(b"070701")?;
    for number in numbers {
        write!(out, "{number:08x}")?;
    }
    out.write_all(name.as_bytes())?;
    out.write_all(b"\0")?;
    fill(out, 110 + name.len() + 1)?;
    out.write_all(bytes)?;
    fill(out, bytes.len())
}

fn fill(out: &mut impl Write, written: usize) -> Result<()> {
    out.write_all(&[0; 3][..written.next_multiple_of(4) - written])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_header_a_name_and_bytes_in_fours() {
        let mut out = Vec::new();
        entry(&mut out, 2, "init", PROGRAM, b"hello").unwrap();
        assert_eq!(&out[..14], b"07070100000002");
        assert_eq!(&out[14..22], b"000081ed");
        assert_eq!(&out[110..116], b"init\0\0");
        assert_eq!(&out[116..], b"hello\0\0\0");
        assert_eq!(out.len() % 4, 0);
    }
}
