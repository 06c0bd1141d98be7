//! Units: which can be converted into each other, and how.

/// What a unit measures. Quantities are compared only where it is the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dimension {
    /// A share, in percent.
    Percent,
    /// A temperature, in degrees Celsius.
    Temperature,
    /// What can be converted by a factor, by the name of its base unit.
    Of(&'static str),
    /// Anything else, by its name: a currency, or what is counted.
    Other(String),
    /// No unit was given.
    None,
}

/// What is measured, and in which multiple of the base unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// What is measured.
    pub dimension: Dimension,
    /// How many of the base unit one of it is.
    pub factor: f64,
    /// What is added after that.
    pub offset: f64,
}

/// Names of units, their base unit, and how many of it one is.
const CONVERTED: [(&[&str], &str, f64); 42] = [
    (&["mm", "millimetre", "millimeter", "millimètre", "milímetro"], "m", 0.001),
    (&["cm", "centimetre", "centimeter", "centimètre", "zentimeter"], "m", 0.01),
    (&["m", "metre", "meter", "metern", "mètre", "metro", "metri"], "m", 1.0),
    (&["km", "kilometre", "kilometer", "kilometern", "kilomètre", "kilómetro", "chilometri"], "m", 1000.0),
    (&["in", "inch", "inche"], "m", 0.0254),
    (&["ft", "foot", "feet"], "m", 0.3048),
    (&["yd", "yard"], "m", 0.9144),
    (&["mi", "mile"], "m", 1609.344),
    (&["nmi", "nautical mile"], "m", 1852.0),
    (&["ns", "nanosecond", "nanosekunde", "nanosekunden", "nanoseconde", "nanosegundo"], "s", 1e-9),
    (
        &["us", "µs", "microsecond", "mikrosekunde", "mikrosekunden", "microseconde", "microsegundo"],
        "s",
        1e-6,
    ),
    (&["ms", "millisecond", "millisekunde", "millisekunden", "milliseconde", "milisegundo"], "s", 0.001),
    (&["s", "sec", "second", "sekunde", "sekunden", "seconde", "segundo", "secondo", "secondi"], "s", 1.0),
    (&["min", "minute", "minuten", "minuto", "minuti"], "s", 60.0),
    (&["h", "hr", "hour", "stunde", "stunden", "heure", "hora", "ora", "ore"], "s", 3600.0),
    (&["d", "day", "tag", "tage", "tagen", "jour", "día", "dia", "giorno", "giorni"], "s", 86_400.0),
    (&["wk", "week", "woche", "wochen", "semaine", "semana", "settimana", "settimane"], "s", 604_800.0),
    (&["month", "mo", "monat", "monate", "monaten", "mois", "mes", "mese", "mesi", "mês"], "s", 2_629_800.0),
    (
        &["y", "yr", "year", "jahr", "jahre", "jahren", "an", "année", "año", "anno", "anni", "ano"],
        "s",
        31_557_600.0,
    ),
    (&["mg", "milligram"], "kg", 1e-6),
    (&["g", "gram", "gramme"], "kg", 0.001),
    (&["kg", "kilo", "kilogram", "kilogramm", "kilogramme", "kilogramo"], "kg", 1.0),
    (&["t", "tonne", "metric ton"], "kg", 1000.0),
    (&["oz", "ounce"], "kg", 0.028_349_523_125),
    (&["lb", "pound"], "kg", 0.453_592_37),
    (&["b", "byte", "octet"], "byte", 1.0),
    (&["kb", "ko", "kilobyte"], "byte", 1e3),
    (&["mb", "megabyte"], "byte", 1e6),
    (&["gb", "go", "gigabyte"], "byte", 1e9),
    (&["tb", "terabyte"], "byte", 1e12),
    (&["kib"], "byte", 1024.0),
    (&["mib"], "byte", 1_048_576.0),
    (&["gib"], "byte", 1_073_741_824.0),
    (&["m²", "m2", "sqm", "square metre", "square meter"], "m2", 1.0),
    (&["ha", "hectare", "hektar", "hectárea"], "m2", 10_000.0),
    (&["km²", "km2", "square kilometre", "square kilometer"], "m2", 1e6),
    (&["square mile", "sq mi"], "m2", 2_589_988.110_336),
    (&["ml", "millilitre", "milliliter"], "l", 0.001),
    (&["l", "litre", "liter", "litro"], "l", 1.0),
    (&["m/s"], "m/s", 1.0),
    (&["km/h", "kmh", "kph"], "m/s", 1.0 / 3.6),
    (&["mph"], "m/s", 0.447_04),
];

/// Names of the unit of a share.
const PERCENT: [&str; 11] = [
    "%",
    "percent",
    "per cent",
    "pct",
    "percentage points",
    "percentage point",
    "pp",
    "prozent",
    "pour cent",
    "por ciento",
    "per cento",
];

/// Names of the same currency.
const CURRENCIES: [(&[&str], &str); 5] = [
    (&["$", "usd", "us$", "dollar", "us dollar"], "usd"),
    (&["€", "eur", "euro"], "eur"),
    (&["£", "gbp", "pound sterling"], "gbp"),
    (&["¥", "jpy", "yen"], "jpy"),
    (&["chf", "swiss franc"], "chf"),
];

/// Words that multiply what stands before them.
const MULTIPLES: [(&str, f64); 13] = [
    ("hundred", 1e2),
    ("thousand", 1e3),
    ("tausend", 1e3),
    ("mil", 1e3),
    ("million", 1e6),
    ("millionen", 1e6),
    ("millone", 1e6),
    ("mio", 1e6),
    ("billion", 1e9),
    ("milliarde", 1e9),
    ("milliarden", 1e9),
    ("bn", 1e9),
    ("trillion", 1e12),
];

/// What multiplies a number, and the unit that is left: `million km` is 1,000,000 and `km`.
#[must_use]
pub fn without_multiple(unit: &str) -> (f64, &str) {
    let unit = unit.trim();
    let end = unit.find(|letter: char| !letter.is_alphabetic()).unwrap_or(unit.len());
    let (first, rest) = unit.split_at(end);
    let word = first.to_lowercase();
    let singular = word.strip_suffix('s').unwrap_or(&word);
    let found = MULTIPLES.iter().find(|(name, _)| *name == singular || *name == word);
    found.map_or((1.0, unit), |(_, times)| {
        let rest = rest.trim();
        (*times, rest.strip_prefix("of ").unwrap_or(rest))
    })
}

/// Whether a text is the sign, code or name of a currency that the reader of units knows.
#[must_use]
pub fn is_currency(text: &str) -> bool {
    let name = text.to_lowercase();
    let singular = name.strip_suffix('s').unwrap_or(&name);
    CURRENCIES.iter().any(|(names, _)| names.contains(&name.as_str()) || names.contains(&singular))
}

/// Reads a unit as it was written.
#[must_use]
pub fn read(text: &str) -> Unit {
    let (times, text) = without_multiple(text);
    let name = text.to_lowercase();
    let name = name.trim().trim_end_matches('.');
    let exactly = |dimension| Unit { dimension, factor: times, offset: 0.0 };
    if name.is_empty() {
        return exactly(Dimension::None);
    }
    if PERCENT.contains(&name) {
        return exactly(Dimension::Percent);
    }
    if ["°c", "c", "celsius", "degrees celsius", "degree celsius", "℃"].contains(&name) {
        return exactly(Dimension::Temperature);
    }
    if ["°f", "f", "fahrenheit", "degrees fahrenheit", "degree fahrenheit", "℉"].contains(&name) {
        let factor = times * 5.0 / 9.0;
        return Unit { dimension: Dimension::Temperature, factor, offset: -32.0 * 5.0 / 9.0 };
    }
    let singular = name.strip_suffix('s').filter(|one| one.chars().count() > 1).unwrap_or(name);
    let named = |names: &&[&str]| names.contains(&name) || names.contains(&singular);
    if let Some((_, base, factor)) = CONVERTED.iter().find(|(names, _, _)| named(names)) {
        return Unit { dimension: Dimension::Of(base), factor: times * factor, offset: 0.0 };
    }
    let currency = CURRENCIES.iter().find(|(names, _)| named(names)).map(|(_, name)| *name);
    exactly(Dimension::Other(currency.unwrap_or(singular).to_owned()))
}

/// Factors of the units with this base unit.
pub fn factors(base: &str) -> impl Iterator<Item = f64> {
    CONVERTED.iter().filter(move |(_, of, _)| *of == base).map(|(_, _, factor)| *factor)
}

impl Unit {
    /// So much of it in the base unit.
    #[must_use]
    pub fn in_base(&self, value: f64) -> f64 {
        value.mul_add(self.factor, self.offset)
    }
}
