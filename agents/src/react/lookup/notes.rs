//! Results of look-ups as notes of a step. Pure.

use muster_corpus::CitedPlace;
use muster_shared::flow::looked_up::digest;
use muster_shared::flow::{LookedUp, Note, PlaceFound, Step};
use muster_shared::text::first_line;

/// Most text of cited lines in one note, in bytes.
const MOST_TEXT: usize = 64 * 1024;

/// Distinguishes places with the same first line.
fn words(place: &CitedPlace) -> u32 {
    digest(&[&place.quote, &place.statement, &place.last.to_string()])
}

/// What the note of a step says of a place.
pub(super) fn noted<'a>(notes: &'a [Note], place: &CitedPlace) -> Option<&'a LookedUp> {
    let words = words(place);
    let same =
        |known: &&LookedUp| known.path == place.path && known.line == place.line && known.words == words;
    looks(notes).rev().find_map(|(places, _)| places.iter().find(same))
}

/// What each look-up of a step gave, and why it gave nothing.
fn looks(notes: &[Note]) -> impl DoubleEndedIterator<Item = (&[LookedUp], &str)> {
    notes.iter().filter_map(|note| match note {
        Note::LookedUp { places, failed } => Some((places.as_slice(), failed.as_str())),
        _ => None,
    })
}

/// Whether the places of a step were looked up.
pub(in crate::react) fn is_looked_up(notes: &[Note]) -> bool {
    looks(notes).next().is_some()
}

/// Why they could not be, if so.
pub(in crate::react) fn not_looked_up(notes: &[Note]) -> Option<&str> {
    looks(notes).map(|(_, failed)| failed).find(|failed| !failed.is_empty())
}

/// What was found of the places that were asked for, as the note of a step.
#[must_use]
pub fn note_of(asked: &[CitedPlace], found: Result<Vec<PlaceFound>, String>) -> Note {
    match found {
        Ok(found) => {
            let place = |(asked, found): (&CitedPlace, PlaceFound)| LookedUp {
                path: asked.path.clone(),
                line: asked.line,
                words: words(asked),
                found,
            };
            let places = within_room(asked.iter().zip(found).map(place).collect());
            Note::LookedUp { places, failed: String::new() }
        }
        Err(failed) => Note::LookedUp { places: Vec::new(), failed: first_line(&failed, 200) },
    }
}

/// The same with no more text than the record has room for.
fn within_room(mut places: Vec<LookedUp>) -> Vec<LookedUp> {
    let mut room = MOST_TEXT;
    for place in &mut places {
        let text = match &mut place.found {
            PlaceFound::Stands(standing) => &mut standing.text,
            PlaceFound::NoQuote { there } | PlaceFound::Contradicted { there, .. } => there,
            PlaceFound::NoFile { .. } | PlaceFound::NoLine { .. } => continue,
        };
        if text.len() > room {
            text.clear();
        }
        room -= text.len();
    }
    places
}

/// The note of a step that its places were looked up.
#[must_use]
pub fn note_in(step: &Step) -> Option<&Note> {
    step.notes.iter().rev().find(|note| matches!(note, Note::LookedUp { .. }))
}
