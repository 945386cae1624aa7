//! Standard output and error. They may be a full disk, or a pipe that nobody reads any more: the standard
//! library's macros panic then, in the middle of a command.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

static LOST: OnceLock<io::Error> = OnceLock::new();

/// Writes to standard output, without colours unless it is a terminal that wants them.
pub fn put(text: Arguments<'_>) {
    note(anstream::stdout().write_fmt(text));
}

/// Writes to standard error, and gives up silently where nobody reads it.
pub fn tell(text: Arguments<'_>) {
    // Nobody is left to be told that they cannot be told.
    let _ = anstream::stderr().write_fmt(text);
}

fn note(written: io::Result<()>) {
    // A reader that has seen enough (`| head`) is no failure.
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        let _ = LOST.set(error);
    }
}

/// Why some of standard output was lost, if it was.
pub fn lost() -> Option<&'static io::Error> {
    note(io::stdout().flush());
    LOST.get()
}

#[doc(hidden)]
#[macro_export]
macro_rules! print {
    ($($words:tt)*) => { $crate::put(format_args!($($words)*)) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! println {
    ($($words:tt)*) => {{
        $crate::print!($($words)*);
        $crate::print!("\n");
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! eprintln {
    ($($words:tt)*) => { $crate::tell(format_args!("{}\n", format_args!($($words)*))) };
}
