//! Files of interrupted searches that are damaged, made up, or of another search.

use super::*;

#[test]
fn damaged_files_are_refused_and_left_alone() {
    let directory = Directory::new();
    let checkpoint = directory.checkpoint();
    let (bakery, options, good) = kept(&directory, "bakery", 3, 2000);
    let refuse = |bytes: &[u8]| {
        fs::write(&checkpoint.path, bytes).expect("it can be written");
        let error = refused(&*bakery, &options, &checkpoint);
        assert!(fs::read(&checkpoint.path).expect("it is there") == bytes, "it is left alone");
        error
    };
    // Any bit of it.
    for at in (0..good.len()).step_by(97).chain([good.len() - 1]) {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << (at % 8);
        match (at, refuse(&bytes)) {
            (0..8, CheckpointError::Foreign(_)) => {}
            (8..16, CheckpointError::Version { .. }) => {}
            (16.., CheckpointError::Damaged { .. }) => {}
            (_, error) => panic!("byte {at}: {error}"),
        }
    }
    // Cut anywhere, or with something after it.
    for len in [0, 7, 23].into_iter().chain((24..good.len()).step_by(1013)) {
        let error = refuse(&good[..len]);
        assert!(matches!(error, CheckpointError::Foreign(_)) == (len < 24), "{len} bytes: {error}");
    }
    refuse(&[&good[..], &[0; 8]].concat());
    refuse(b"#!/bin/sh\necho this is somebody's file\n");
    // And as it was, it is taken.
    fs::write(&checkpoint.path, &good).expect("it can be written");
    check_kept(&*bakery, &options, &Progress::default(), &checkpoint).expect("it runs");
}

/// The checksum of a file, as the module says.
fn checksum(words: &[u64]) -> u64 {
    words.iter().fold(0x243f_6a88_85a3_08d3, |sum: u64, word| {
        let product = u128::from(sum ^ word) * u128::from(0x9e37_79b9_7f4a_7c15_u64);
        (product >> 64) as u64 ^ product as u64 ^ sum.rotate_left(23)
    })
}

/// Where everything stands in the words of a file.
struct Map {
    /// What says which search it is: any change makes it another one.
    identity: Range<usize>,
    elapsed: usize,
    stride: usize,
    lessons: Range<usize>,
    bits: Range<usize>,
    sizes: Range<usize>,
    keys: Range<usize>,
}

impl Map {
    fn of(words: &[u64]) -> Self {
        let text = |at: usize| at + 1 + (words[at] as usize).div_ceil(8);
        let list = |at: usize| at + 1..at + 1 + words[at] as usize;
        let elapsed = text(text(3));
        let lessons = list(elapsed + 3);
        let bits = list(lessons.end);
        let sizes = list(bits.end);
        let keys = sizes.end..words.len() - 1;
        let map =
            Self { identity: 2..elapsed, elapsed, stride: elapsed + 2, lessons, bits, sizes, keys };
        let count: u64 = words[map.sizes.clone()].iter().sum();
        assert_eq!(count * words[map.stride], map.keys.len() as u64);
        map
    }

    /// Whether a file with this word here cannot be right.
    fn is_wrong(&self, words: &[u64], at: usize, word: u64) -> bool {
        // Keys have one word here, of which the top bit is always set. In some field there is space
        // for more numbers than all lessons can have given, so that not all of its bits can be set.
        let widest = *words[self.bits.clone()].iter().max().expect("there are fields");
        assert!(words[self.stride] == 1 && 1 << widest > words[self.lessons.clone()].len());
        let key = self.keys.contains(&at) && (word >> 63 == 0 || word == u64::MAX);
        word != words[at]
            && (self.identity.contains(&at) || at == self.stride || self.sizes.contains(&at) || key)
    }
}

/// With the checksum made right again: whatever the words say, it is refused or the search goes on,
/// without a panic and without a table for 2^60 states.
#[test]
fn made_up_files_do_no_harm() {
    for name in ["bakery", "black-white-bakery"] {
        let directory = Directory::new();
        let checkpoint = directory.checkpoint();
        let (subject, options, good) = kept(&directory, name, 2, 80);
        let good: Vec<u64> =
            good.as_chunks().0.iter().map(|&bytes| u64::from_le_bytes(bytes)).collect();
        assert_eq!(good.last(), Some(&checksum(&good[..good.len() - 1])));
        let map = Map::of(&good);
        let run = |words: &[u64]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            fs::write(&checkpoint.path, bytes).expect("it can be written");
            check_kept(&*subject, &options, &Progress::default(), &checkpoint)
        };
        let whole = facts(&run(&good).expect("it runs"));
        // Of what was learned there is much of a kind.
        let all = (2..map.lessons.start)
            .chain(map.lessons.clone().step_by(5))
            .chain(map.bits.start - 1..map.keys.end);
        for at in all {
            for word in [0, u64::MAX, good[at].wrapping_add(1), good[at] ^ 1 << 40] {
                let mut words = good.clone();
                words[at] = word;
                *words.last_mut().expect("it is long") = checksum(&words[..words.len() - 1]);
                let wrong = map.is_wrong(&good, at, word);
                match run(&words) {
                    Err(Unchecked::Checkpoint(_)) => {
                        assert_ne!(at, map.elapsed, "{word:x} is a time")
                    }
                    Err(other) => panic!("{name}: word {at}: {other}"),
                    Ok(_) if wrong => panic!("{name}: word {at} was believed to be {word:x}"),
                    Ok(report) if at == map.elapsed => assert_eq!(facts(&report), whole),
                    Ok(_) => {}
                }
            }
        }
    }
}

#[test]
fn other_searches_are_refused() {
    let directory = Directory::new();
    let checkpoint = directory.checkpoint();
    let (bakery, options, _) = kept(&directory, "bakery", 3, 2000);
    let program = Checkpoint { program: "another".into(), ..checkpoint.clone() };
    assert!(matches!(refused(&*bakery, &options, &program), CheckpointError::Program { .. }));
    let more = Checkpoint { more: ", abandoning".into(), ..checkpoint.clone() };
    assert!(matches!(refused(&*bakery, &options, &more), CheckpointError::Asked { .. }));
    let entrant = Entrant::named("bakery").expect("there is one");
    let mutant = entrant.build(Size::mutex(3), Some("without-line-3"), false).expect("it fits");
    let larger = subject("bakery", Size::mutex(4));
    let other = subject("yang-anderson", Size::mutex(3));
    let default = &options;
    for (subject, options) in [
        (&*mutant, default.clone()),
        (&*larger, default.clone()),
        (&*other, default.clone()),
        (&*bakery, Options { passages: Some(2), ..default.clone() }),
        (&*bakery, Options { registers: RegisterKind::Safe, ..default.clone() }),
        (&*bakery, Options { relabel: Some(false), ..default.clone() }),
        // It would have gone past a violation of this.
        (&*bakery, Options { properties: vec![Property::KExclusion], ..default.clone() }),
    ] {
        let error = refused(subject, &options, &checkpoint);
        assert!(matches!(error, CheckpointError::Asked { .. }), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
    }
    // What is decided afterwards is another matter, and so is how many workers search.
    let later = Options { properties: vec![Property::MutualExclusion], workers: 2, ..options };
    check_kept(&*bakery, &later, &Progress::default(), &checkpoint).expect("it runs");
}
