//! Temporary files on a disk of a known speed, which tell which thread wrote and read how much.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::counters::Counters;
use crate::locked;

thread_local! {
    /// Bytes that this thread has written to files and read from them so far.
    static BYTES_HERE: Cell<u64> = const { Cell::new(0) };
}

/// Bytes of files that the calling thread has written and read so far.
pub(crate) fn bytes_on_this_thread() -> u64 {
    BYTES_HERE.get()
}

/// How much the disk may have left to do when a call returns: about as much as a kernel writes behind
/// and reads ahead, and too long for the disk to run dry before the next call.
const QUEUED: Duration = Duration::from_millis(1);

/// Where temporary files are made. They are real ones, but the disk is a stand-in: it writes and
/// reads so many MiB a second, for all files together and whatever the machine has. Clones share it.
#[derive(Debug, Clone)]
pub struct Files {
    folder: PathBuf,
    /// Looked at once: a file is made for each body.
    is_device: bool,
    disk: Arc<Disk>,
}

#[derive(Debug)]
struct Disk {
    /// `None` is as fast as the machine's own.
    bytes_per_second: Option<f64>,
    /// When it will have done all that it was asked for.
    free_at: Mutex<Instant>,
    counters: Arc<Counters>,
}

impl Files {
    pub(crate) fn new(folder: PathBuf, mib_per_second: u32, counters: Arc<Counters>) -> Self {
        let bytes_per_second = f64::from(mib_per_second) * 1024.0 * 1024.0;
        let disk = Disk {
            bytes_per_second: Some(bytes_per_second).filter(|speed| *speed > 0.0),
            free_at: Mutex::new(Instant::now()),
            counters,
        };
        Self {
            is_device: folder.exists() && !folder.is_dir(),
            folder,
            disk: Arc::new(disk),
        }
    }

    /// A new file, empty. In place of a folder it may be a device, which is opened itself: Linux has
    /// `/dev/full`, a disk that is full.
    ///
    /// # Errors
    ///
    /// When none can be made in the folder.
    pub fn create(&self) -> io::Result<CountedFile> {
        if self.is_device {
            let mut options = File::options();
            let file = options.read(true).write(true).open(&self.folder)?;
            return Ok(self.counted(file));
        }
        // ANCHOR: file
        // On Linux it never gets a name, elsewhere it loses its name at once or is removed by the
        // system when it is closed. However this process ends, the file ends with it.
        let file = tempfile::tempfile_in(&self.folder)?;
        // ANCHOR_END: file
        Ok(self.counted(file))
    }

    fn counted(&self, file: File) -> CountedFile {
        CountedFile {
            file,
            disk: Arc::clone(&self.disk),
        }
    }
}

impl Disk {
    /// Takes a job of so many bytes. Returns for how long its caller has to wait.
    fn take(&self, bytes: usize) -> Duration {
        let Some(speed) = self.bytes_per_second else {
            return Duration::ZERO;
        };
        let mut free_at = locked(&self.free_at);
        let now = Instant::now();
        *free_at = (*free_at).max(now) + Duration::from_secs_f64(bytes as f64 / speed);
        let wait = (*free_at - now).checked_sub(QUEUED);
        // A sleep is some 50 µs too long: few long ones are more exact than many short ones.
        wait.filter(|wait| *wait >= QUEUED).unwrap_or_default()
    }
}

/// A file whose bytes are counted, in total and for the thread that writes or reads them, so that
/// `/metrics` can tell how many of them the reactor's own thread did. A call returns when the disk
/// has done nearly all of it.
#[derive(Debug)]
pub struct CountedFile {
    file: File,
    disk: Arc<Disk>,
}

impl CountedFile {
    fn wait(&self, bytes: usize) {
        std::thread::sleep(self.disk.take(bytes));
        BYTES_HERE.set(BYTES_HERE.get() + bytes as u64);
    }

    /// The file for functions that do not block, such as those of `tokio::fs`, with what to call after
    /// each of them.
    pub fn into_parts(self) -> (File, Pace) {
        (self.file, Pace(self.disk))
    }
}

/// Makes functions that do not block wait for the disk, and counts what they wrote and read.
#[derive(Debug)]
pub struct Pace(Arc<Disk>);

impl Pace {
    /// To be awaited after so many bytes were written.
    pub async fn written(&self, bytes: usize) {
        self.0
            .counters
            .file_bytes_written
            .fetch_add(bytes as u64, Relaxed);
        tokio::time::sleep(self.0.take(bytes)).await;
    }

    /// To be awaited after so many bytes were read.
    pub async fn read(&self, bytes: usize) {
        self.0
            .counters
            .file_bytes_read
            .fetch_add(bytes as u64, Relaxed);
        tokio::time::sleep(self.0.take(bytes)).await;
    }
}

impl Read for CountedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read(buffer)?;
        self.disk
            .counters
            .file_bytes_read
            .fetch_add(bytes as u64, Relaxed);
        self.wait(bytes);
        Ok(bytes)
    }
}

impl Write for CountedFile {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let bytes = self.file.write(buffer)?;
        self.disk
            .counters
            .file_bytes_written
            .fetch_add(bytes as u64, Relaxed);
        self.wait(bytes);
        Ok(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for CountedFile {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_is_as_fast_as_was_said_and_no_faster() {
        let counters = Arc::new(Counters::default());
        let files = Files::new(std::env::temp_dir(), 64, Arc::clone(&counters));
        let began = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut file = files.create().expect("a file");
                    file.write_all(&vec![7; 1024 * 1024])
                        .expect("room on the disk");
                    file.rewind().expect("it can be read");
                    file.read_exact(&mut vec![0; 1024 * 1024])
                        .expect("what was written");
                });
            }
        });
        // 8 MiB at 64 MiB a second, but for what may be left to do.
        assert!(began.elapsed() >= Duration::from_millis(120));
        assert_eq!(counters.bytes_kept(), 4 * 1024 * 1024);
    }
}
