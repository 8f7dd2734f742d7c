//! The lists of references of a cluster, as numbers that are a part of its text.
//!
//! For each type there is how many numbers its list has, how many references, and then one reference after the other: as a
//! rule a single number, which is the place of a definition.

use std::{ops::Range, string::FromUtf8Error};

use crate::slots::Place;

/// What an entry of a cluster's list has beside the id of a definition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside<'a> {
    /// Whether the cluster wants what it refers to.
    pub(crate) enabled: bool,
    /// What it says, if that makes a difference, as the JSON of an object; null says nothing.
    pub(crate) fields: Option<&'a str>,
    /// What the cluster changes of it, as more members of a JSON object. Nothing, where that has no meaning.
    pub(crate) patches: Option<&'a str>,
}

/// Behind the place of a definition, two bits tell what a reference has beside it.
const BITS: u32 = 2;
const SAID: u64 = 1;
const PATCHED: u64 = 2;

/// A reference to be written: whether its definition is wanted and what it says, if it says something, and how that is patched;
/// both by where in the cluster's text it is.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    pub(super) place: Place,
    pub(super) said: Option<(bool, Range<usize>)>,
    pub(super) patched: Option<Range<usize>>,
}

/// The lists of a cluster, as they are written.
pub(super) struct Written {
    numbers: Vec<u64>,
    /// Where the last list begins.
    last: usize,
}

impl Written {
    pub(super) fn with_capacity(numbers: usize) -> Self {
        Self { numbers: Vec::with_capacity(numbers), last: 0 }
    }

    /// Begins the list of the next type.
    pub(super) fn begin(&mut self) {
        self.last = self.numbers.len();
        self.numbers.extend([HEAD, 0]);
    }

    /// Adds a reference to it.
    pub(super) fn push(&mut self, Reference { place, said, patched }: Reference) {
        let numbers = &mut self.numbers;
        let has_said = if said.is_some() { SAID } else { 0 };
        let has_patched = if patched.is_some() { PATCHED } else { 0 };
        numbers.push(u64::from(place) << BITS | has_said | has_patched);
        if let Some((enabled, text)) = said {
            numbers.extend([u64::from(enabled), text.start as u64, text.end as u64]);
        }
        if let Some(text) = patched {
            numbers.extend([text.start as u64, text.end as u64]);
        }
        numbers[self.last] = (numbers.len() - self.last) as u64;
        numbers[self.last + 1] += 1;
    }

    /// How many letters each number has, and the numbers, in as many letters as the largest one needs.
    pub(super) fn into_text(self) -> Result<String, FromUtf8Error> {
        let largest = self.numbers.iter().max().copied().unwrap_or_default();
        let width = (u64::BITS - largest.leading_zeros()).div_ceil(LETTER).max(1);
        let mut letters = Vec::with_capacity(1 + self.numbers.len() * width as usize);
        letters.push(letter(width.into()));
        for number in self.numbers {
            letters.extend((0..width).map(|at| letter(number >> (at * LETTER))));
        }
        String::from_utf8(letters)
    }
}

/// Before the references of a list there is how many numbers and how many references it has.
const HEAD: u64 = 2;

/// A letter has so many bits of a number, the lowest first. Whatever they are, it is text.
const LETTER: u32 = 7;

fn letter(number: u64) -> u8 {
    let [lowest, ..] = number.to_le_bytes();
    lowest & ((1 << LETTER) - 1)
}

/// The references of one list, in their order.
#[derive(Clone, Debug)]
pub(crate) struct List<'a> {
    /// How many are still to come.
    left: usize,
    numbers: Numbers<'a>,
    /// What they say, and how that is patched.
    text: &'a str,
}

impl<'a> List<'a> {
    /// The list at a position of those that were written.
    pub(super) fn at(position: usize, written: &'a str, text: &'a str) -> Self {
        // Nobody is to take a list for empty that is not there: of this one there is something to come, and never does.
        let lost = (1, Numbers { width: 1, letters: &[] });
        let (left, numbers) = Numbers::of(written, position).unwrap_or(lost);
        Self { left, numbers, text }
    }

    fn text(&mut self) -> Option<&'a str> {
        self.text.get(self.numbers.size()?..self.numbers.size()?)
    }
}

impl<'a> Iterator for List<'a> {
    type Item = (Place, Beside<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let mut beside = Beside { enabled: true, fields: None, patches: None };
        let number = self.numbers.next()?;
        if number & SAID != 0 {
            beside.enabled = self.numbers.next()? != 0;
            beside.fields = Some(self.text()?);
        }
        if number & PATCHED != 0 {
            beside.patches = Some(self.text()?);
        }
        Some((Place::try_from(number >> BITS).ok()?, beside))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for List<'_> {}

/// Numbers as they were written, one after the other.
#[derive(Clone, Debug)]
struct Numbers<'a> {
    width: usize,
    letters: &'a [u8],
}

impl<'a> Numbers<'a> {
    /// How many references the list at a position has, and their numbers.
    fn of(written: &'a str, position: usize) -> Option<(usize, Self)> {
        let (width, letters) = written.as_bytes().split_first()?;
        let mut numbers = Self { width: usize::from(*width), letters };
        for _ in 0..position {
            let length = numbers.clone().size()?;
            numbers.letters = numbers.letters.get(length * numbers.width..)?;
        }
        numbers.next()?;
        Some((numbers.size()?, numbers))
    }

    fn size(&mut self) -> Option<usize> {
        usize::try_from(self.next()?).ok()
    }
}

impl Iterator for Numbers<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let (number, letters) = self.letters.split_at_checked(self.width)?;
        self.letters = letters;
        Some(match number {
            // Most numbers have two; a poll reads some for each input.
            [low, high] => u64::from(*low) | u64::from(*high) << LETTER,
            letters => letters.iter().rev().fold(0, |number, letter| number << LETTER | u64::from(*letter)),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, option, prelude::*};

    use super::*;

    fn reference(text: usize) -> impl Strategy<Value = Reference> {
        let range = move || (0..=text, 0..=text).prop_map(|(one, other)| one.min(other)..one.max(other));
        let place = prop_oneof![0..100_u32, any::<u32>()];
        (place, option::of((any::<bool>(), range())), option::of(range()))
            .prop_map(|(place, said, patched)| Reference { place, said, patched })
    }

    proptest! {
        #[test]
        fn lists_are_read_as_they_were_written(
            (length, lists) in prop_oneof![Just(9), Just(20_000)].prop_flat_map(|length| (
                Just(length),
                vec(vec(reference(length), 0..9), 0..5),
            )),
        ) {
            let text: String = (b'a'..=b'z').cycle().take(length).map(char::from).collect();
            let mut written = Written::with_capacity(0);
            for list in &lists {
                written.begin();
                for reference in list {
                    written.push(reference.clone());
                }
            }
            let written = written.into_text().unwrap();
            for (position, list) in lists.iter().enumerate() {
                let read = List::at(position, &written, &text);
                prop_assert_eq!(read.len(), list.len());
                prop_assert_eq!(read.clone().count(), list.len());
                for (reference, (place, beside)) in list.iter().zip(read) {
                    let (enabled, said) = reference.said.clone().unzip();
                    prop_assert_eq!(place, reference.place);
                    prop_assert_eq!(beside.enabled, enabled.unwrap_or(true));
                    prop_assert_eq!(beside.fields, said.map(|said| &text[said]));
                    prop_assert_eq!(beside.patches, reference.patched.clone().map(|patched| &text[patched]));
                }
            }
            let none = List::at(lists.len(), &written, &text);
            prop_assert_eq!((none.len(), none.count()), (1, 0), "what is not there is not empty");
        }
    }
}
