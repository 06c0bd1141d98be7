//! Names of days and months. Texts also have them in short form, of three letters and more.

/// Days of the week, from Monday.
pub(crate) const DAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Months of the year, from January.
pub const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Months in German, French, Spanish, Italian and Portuguese, from January.
const TRANSLATED: [&[&str]; 12] = [
    &["januar", "jänner", "janvier", "enero", "gennaio", "janeiro"],
    &["februar", "février", "febrero", "febbraio", "fevereiro"],
    &["märz", "mars", "marzo", "março"],
    &["avril", "abril", "aprile"],
    &["mai", "mayo", "maggio", "maio"],
    &["juni", "juin", "junio", "giugno", "junho"],
    &["juli", "juillet", "julio", "luglio", "julho"],
    &["août", "agosto"],
    &["septembre", "septiembre", "settembre", "setembro"],
    &["oktober", "octobre", "octubre", "ottobre", "outubro"],
    &["novembre", "noviembre", "novembro"],
    &["dezember", "décembre", "diciembre", "dicembre", "dezembro"],
];

/// Short forms of months in these languages, without those that are also words.
pub(crate) const SHORT_MONTHS: [&str; 23] = [
    "jan", "ene", "feb", "fév", "fev", "mar", "mär", "apr", "avr", "abr", "jun", "jul", "juil", "aug",
    "sept", "sep", "oct", "okt", "nov", "dec", "dez", "déc", "dic",
];

/// Names of months in full.
pub(crate) fn month_names() -> impl Iterator<Item = &'static str> {
    MONTHS.into_iter().chain(TRANSLATED.into_iter().flatten().copied())
}

/// Month, from 1, of a name in full or shortened. `word` is in lower case.
pub(crate) fn month_of(word: &str) -> Option<u32> {
    let is_start = word.chars().count() >= 3;
    let names =
        |at: usize| MONTHS.get(at).into_iter().chain(TRANSLATED.get(at).copied().into_iter().flatten());
    let exact = (0..12).find(|at| names(*at).any(|name| *name == word));
    let at =
        exact.or_else(|| (0..12).find(|at| is_start && names(*at).any(|name| name.starts_with(word))))?;
    u32::try_from(at + 1).ok()
}
