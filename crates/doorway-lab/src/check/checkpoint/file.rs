//! The file of a checkpoint: 64-bit words, least byte first.
//!
//! | words | |
//! |---|---|
//! | 1 | "doorwayS" |
//! | 1 | the version of this format |
//! | 1 | how many words there are in all |
//! | | what is in [`Head`], lists and texts with their lengths before them |
//! | | the keys, level by level |
//! | 1 | the checksum of everything before it |

use std::{
    fs::{self, File},
    io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use super::CheckpointError;

/// The version of the format that this code writes and reads.
pub(super) const VERSION: u64 = 1;
const MAGIC: u64 = u64::from_le_bytes(*b"doorwayS");
/// The words before the content: magic, version and length.
const PREFIX: usize = 3;
const WORD: usize = size_of::<u64>();
const BUFFER: usize = 1 << 16;

/// Everything but the keys.
pub(super) struct Head {
    pub(super) program: String,
    pub(super) asked: String,
    pub(super) elapsed: Duration,
    pub(super) transitions: u64,
    /// The encoded lessons, which gave new numbers.
    pub(super) lessons: Vec<u64>,
    /// The number of bits of each field of a key.
    pub(super) bits: Vec<u64>,
    /// The number of words of a key.
    pub(super) stride: u64,
    /// The number of keys of each level; the last level is not finished.
    pub(super) sizes: Vec<u64>,
}

impl Head {
    fn words(&self) -> Vec<u64> {
        let mut words = vec![MAGIC, VERSION, 0];
        for text in [&self.program, &self.asked] {
            words.push(text.len() as u64);
            words.extend(text.as_bytes().chunks(WORD).map(|bytes| {
                let mut word = [0; WORD];
                word[..bytes.len()].copy_from_slice(bytes);
                u64::from_le_bytes(word)
            }));
        }
        words.extend([self.elapsed.as_micros() as u64, self.transitions, self.stride]);
        for list in [&self.lessons, &self.bits, &self.sizes] {
            words.push(list.len() as u64);
            words.extend(list);
        }
        let keys: u64 = self.sizes.iter().sum::<u64>() * self.stride;
        words[2] = words.len() as u64 + keys + 1;
        words
    }
}

/// A checksum over every word and its place.
#[derive(Clone, Copy)]
struct Sum(u64);

impl Sum {
    fn new() -> Self {
        Self(0x243f_6a88_85a3_08d3)
    }

    fn add(&mut self, words: &[u64]) {
        for &word in words {
            let product = u128::from(self.0 ^ word) * u128::from(0x9e37_79b9_7f4a_7c15_u64);
            // The previous sum goes in as well. Otherwise, what follows a product of zero would not
            // depend on what is before it.
            self.0 = (product >> 64) as u64 ^ (product as u64) ^ self.0.rotate_left(23);
        }
    }
}

/// A file that is being written.
pub(super) struct Output {
    file: BufWriter<File>,
    sum: Sum,
    /// The number of words still to come, the checksum included.
    left: u64,
}

impl Output {
    pub(super) fn create(path: &Path, head: &Head) -> io::Result<Self> {
        let words = head.words();
        let file = BufWriter::with_capacity(BUFFER, File::create(path)?);
        let mut output = Self { file, sum: Sum::new(), left: words[2] };
        output.words(&words)?;
        Ok(output)
    }

    pub(super) fn words(&mut self, words: &[u64]) -> io::Result<()> {
        self.sum.add(words);
        self.left -= words.len() as u64;
        words.iter().try_for_each(|word| self.file.write_all(&word.to_le_bytes()))
    }

    /// Writes the checksum, and waits until everything is on the disk.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let sum = self.sum.0;
        self.words(&[sum])?;
        debug_assert_eq!(self.left, 0);
        self.file.into_inner()?.sync_all()
    }
}

/// A file that is being read; nothing in it is trusted.
pub(super) struct Input {
    path: PathBuf,
    file: BufReader<File>,
    /// The number of words still to come before the checksum.
    left: u64,
}

impl Input {
    /// Opens a file and checks that it is whole.
    pub(super) fn open(path: &Path) -> Result<Self, CheckpointError> {
        let failed = |error| CheckpointError::Read { path: path.into(), error };
        // Opening a pipe would wait for ever, and a device has no end.
        if !fs::metadata(path).map_err(failed)?.is_file() {
            return Err(CheckpointError::Foreign(path.into()));
        }
        let file = File::open(path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        let file = BufReader::with_capacity(BUFFER, file);
        let mut input = Self { path: path.into(), file, left: bytes / WORD as u64 };
        let mut prefix = [0; PREFIX];
        if bytes < (PREFIX * WORD) as u64 {
            return Err(CheckpointError::Foreign(path.into()));
        }
        input.read(&mut prefix)?;
        let [magic, version, length] = prefix;
        if magic != MAGIC {
            return Err(CheckpointError::Foreign(path.into()));
        }
        if version != VERSION {
            return Err(CheckpointError::Version { path: path.into(), version });
        }
        if length.checked_mul(WORD as u64) != Some(bytes) {
            return Err(input.damaged("it is not as long as it was"));
        }
        input.check(&prefix)?;
        Ok(input)
    }

    /// Compares the checksum, and goes back to where the prefix ends.
    fn check(&mut self, prefix: &[u64]) -> Result<(), CheckpointError> {
        let mut sum = Sum::new();
        sum.add(prefix);
        let after = self.left;
        let mut words = vec![0; BUFFER / WORD];
        while self.left > 1 {
            let count = (self.left - 1).min(words.len() as u64) as usize;
            self.read(&mut words[..count])?;
            sum.add(&words[..count]);
        }
        let mut last = [0];
        self.read(&mut last)?;
        if last[0] != sum.0 {
            return Err(self.damaged("its checksum is wrong"));
        }
        self.file
            .seek(SeekFrom::Start((PREFIX * WORD) as u64))
            .map_err(|error| self.failed(error))?;
        self.left = after - 1;
        Ok(())
    }

    /// Reads everything up to the keys; the rest of the file is keys only.
    pub(super) fn head(&mut self) -> Result<Head, CheckpointError> {
        let (program, asked) = (self.text()?, self.text()?);
        let mut numbers = [0; 3];
        self.read(&mut numbers)?;
        let [elapsed, transitions, stride] = numbers;
        let (lessons, bits, sizes) = (self.list()?, self.list()?, self.list()?);
        let keys = sizes.iter().try_fold(0u64, |sum, &size| sum.checked_add(size));
        if keys.and_then(|keys| keys.checked_mul(stride)) != Some(self.left) {
            return Err(self.damaged("its levels are not as long as they say"));
        }
        let elapsed = Duration::from_micros(elapsed);
        Ok(Head { program, asked, elapsed, transitions, lessons, bits, stride, sizes })
    }

    /// Reads words, if there are so many.
    pub(super) fn read(&mut self, words: &mut [u64]) -> Result<(), CheckpointError> {
        self.left = self
            .left
            .checked_sub(words.len() as u64)
            .ok_or_else(|| self.damaged("a length is wrong"))?;
        for word in words {
            let mut bytes = [0; WORD];
            self.file.read_exact(&mut bytes).map_err(|error| self.failed(error))?;
            *word = u64::from_le_bytes(bytes);
        }
        Ok(())
    }

    fn list(&mut self) -> Result<Vec<u64>, CheckpointError> {
        let mut count = [0];
        self.read(&mut count)?;
        if count[0] > self.left {
            return Err(self.damaged("a length is wrong"));
        }
        let mut words = vec![0; count[0] as usize];
        self.read(&mut words)?;
        Ok(words)
    }

    fn text(&mut self) -> Result<String, CheckpointError> {
        let mut bytes = [0];
        self.read(&mut bytes)?;
        let words = bytes[0].div_ceil(WORD as u64);
        if words > self.left {
            return Err(self.damaged("a length is wrong"));
        }
        let mut text = vec![0; words as usize];
        self.read(&mut text)?;
        let mut text: Vec<u8> = text.into_iter().flat_map(u64::to_le_bytes).collect();
        if text.drain(bytes[0] as usize..).any(|byte| byte != 0) {
            return Err(self.damaged("a length is wrong"));
        }
        String::from_utf8(text).map_err(|_| self.damaged("a text is none"))
    }

    /// Returns the error that something is not as it was written.
    pub(super) fn damaged(&self, why: &'static str) -> CheckpointError {
        CheckpointError::Damaged { path: self.path.clone(), why }
    }

    /// Returns the error that the system refuses.
    pub(super) fn failed(&self, error: io::Error) -> CheckpointError {
        CheckpointError::Read { path: self.path.clone(), error }
    }
}
