//! Events of a streamed answer (`text/event-stream`), put together from whatever pieces arrive. Pure.

/// The longest event, in bytes: a stream that never ends one would fill the memory.
const MOST: usize = 8 << 20;

/// Why a stream cannot be read on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SseFault {
    /// It is no text.
    NoText,
    /// One of its events has no end.
    TooLong,
}

impl SseFault {
    pub(super) const fn in_words(&self) -> &'static str {
        match self {
            Self::NoText => "the answer is garbage: it is no UTF-8",
            Self::TooLong => "the answer is garbage: an event of it has no end",
        }
    }
}

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SseEvent<'a> {
    /// Its name, where it has one.
    pub(super) name: Option<&'a str>,
    /// What it holds.
    pub(super) data: &'a str,
}

/// What arrived and is no whole event yet.
#[derive(Debug, Default)]
pub(super) struct SseReader {
    /// A line that has not ended.
    line: Vec<u8>,
    name: String,
    data: String,
    /// Whether the event has any line.
    begun: bool,
    /// Whether the last byte was a carriage return, which a line feed may follow.
    returned: bool,
    /// Events that have ended, of which `with_data` held something.
    pub(super) events: usize,
    pub(super) with_data: usize,
}

impl SseReader {
    /// Takes the next piece; every event that ends in it is shown, until `show` says to stop.
    ///
    /// # Errors
    /// When the stream cannot be read on, or what `show` says.
    pub(super) fn take<E: From<SseFault>>(
        &mut self,
        mut piece: &[u8],
        show: &mut dyn FnMut(SseEvent<'_>) -> Result<bool, E>,
    ) -> Result<bool, E> {
        if self.returned && piece.first() == Some(&b'\n') {
            piece = &piece[1..];
            self.returned = false;
        }
        while let Some(at) = piece.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, rest) = (&piece[..at], &piece[at + 1..]);
            self.returned = piece[at] == b'\r';
            piece = match rest.strip_prefix(b"\n") {
                Some(rest) if self.returned => {
                    self.returned = false;
                    rest
                }
                Some(_) | None => rest,
            };
            let goes_on = if self.line.is_empty() {
                self.line(line, show)?
            } else {
                self.line.extend_from_slice(line);
                let line = std::mem::take(&mut self.line);
                self.line(&line, show)?
            };
            if !goes_on {
                return Ok(false);
            }
        }
        if !piece.is_empty() {
            self.returned = false;
        }
        self.line.extend_from_slice(piece);
        if self.line.len() + self.data.len() > MOST {
            return Err(SseFault::TooLong.into());
        }
        Ok(true)
    }

    /// The stream has ended: what is left is an event too.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub(super) fn end<E: From<SseFault>>(
        &mut self,
        show: &mut dyn FnMut(SseEvent<'_>) -> Result<bool, E>,
    ) -> Result<bool, E> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() && !self.line(&line, show)? {
            return Ok(false);
        }
        self.dispatch(show)
    }

    fn line<E: From<SseFault>>(
        &mut self,
        line: &[u8],
        show: &mut dyn FnMut(SseEvent<'_>) -> Result<bool, E>,
    ) -> Result<bool, E> {
        if line.is_empty() {
            return self.dispatch(show);
        }
        self.begun = true;
        let line = std::str::from_utf8(line).map_err(|_| SseFault::NoText)?.trim();
        if let Some(name) = line.strip_prefix("event:") {
            name.trim().clone_into(&mut self.name);
        } else if let Some(data) = line.strip_prefix("data:") {
            if !self.data.is_empty() {
                self.data.push('\n');
            }
            self.data.push_str(data.trim());
        }
        Ok(true)
    }

    fn dispatch<E>(&mut self, show: &mut dyn FnMut(SseEvent<'_>) -> Result<bool, E>) -> Result<bool, E> {
        if !std::mem::take(&mut self.begun) {
            return Ok(true);
        }
        self.events += 1;
        let mut goes_on = Ok(true);
        if !self.data.is_empty() {
            self.with_data += 1;
            let name = Some(self.name.as_str()).filter(|name| !name.is_empty());
            goes_on = show(SseEvent { name, data: &self.data });
        }
        self.name.clear();
        self.data.clear();
        goes_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events(pieces: &[&[u8]]) -> (Vec<String>, SseReader) {
        let mut reader = SseReader::default();
        let mut seen = Vec::new();
        let mut show = |event: SseEvent<'_>| {
            seen.push(format!("{}|{}", event.name.unwrap_or("-"), event.data));
            Ok::<_, SseFault>(true)
        };
        for piece in pieces {
            assert!(reader.take(piece, &mut show).unwrap());
        }
        assert!(reader.end(&mut show).unwrap());
        (seen, reader)
    }

    #[test]
    fn events_are_found_whatever_ends_their_lines() {
        let cases: &[(&str, &[&str])] = &[
            ("data: a\n\ndata: b\n\n", &["-|a", "-|b"]),
            ("data: a\r\n\r\ndata: b\r\n\r\n", &["-|a", "-|b"]),
            ("data: a\r\rdata:b\r\r", &["-|a", "-|b"]),
            ("event: x\ndata: {\"é\": 1}\n\n", &["x|{\"é\": 1}"]),
            ("data: a\ndata: b\n\n", &["-|a\nb"]),
            (": ping\n\nid: 3\nretry: 4\n\ndata: a\n\n", &["-|a"]),
            ("event: x\n\ndata: a\n\n", &["-|a"]),
            ("data: the end without its line", &["-|the end without its line"]),
            ("\n\n\n", &[]),
            ("", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(events(&[text.as_bytes()]).0, *expected, "{text:?}");
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(events(&bytes).0, *expected, "{text:?} byte by byte");
        }
    }

    #[test]
    fn what_is_no_stream_is_seen_as_such() {
        let (seen, reader) = events(&[br#"{"choices": []}"#]);
        assert_eq!((seen.len(), reader.events, reader.with_data), (0, 1, 0));
        let (seen, reader) = events(&[b": ping\n\ndata: a\n\n"]);
        assert_eq!((seen.len(), reader.events, reader.with_data), (1, 2, 1));
    }

    #[test]
    fn garbage_and_endless_events_are_refused() {
        let mut ignore = |_: SseEvent<'_>| Ok::<_, SseFault>(true);
        let mut reader = SseReader::default();
        reader.take(&[0x7b, 0xff, 0xfe, 0x00, 0x93, 0x21], &mut ignore).unwrap();
        assert_eq!(reader.end(&mut ignore), Err(SseFault::NoText));
        let mut reader = SseReader::default();
        let piece = vec![b'x'; MOST / 2 + 1];
        assert_eq!(reader.take(&piece, &mut ignore), Ok(true));
        assert_eq!(reader.take(&piece, &mut ignore), Err(SseFault::TooLong));
    }

    #[test]
    fn whoever_has_heard_enough_hears_no_more() {
        let mut reader = SseReader::default();
        let mut seen = 0;
        let mut show = |_: SseEvent<'_>| {
            seen += 1;
            Ok::<_, SseFault>(false)
        };
        assert_eq!(reader.take(b"data: a\n\ndata: b\n\n", &mut show), Ok(false));
        assert_eq!(seen, 1);
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            lines in prop::collection::vec("(data: [a-zé ]{0,6}|event: [a-z]{1,3}|: c|)(\n|\r\n|\n\n|\r\n\r\n)", 0..12),
            cuts in prop::collection::vec(1_usize..9, 1..6),
        ) {
            let text = lines.concat();
            let whole = events(&[text.as_bytes()]);
            let mut rest = text.as_bytes();
            let mut pieces = Vec::new();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            let cut = events(&pieces);
            prop_assert_eq!(whole.0, cut.0);
            prop_assert_eq!((whole.1.events, whole.1.with_data), (cut.1.events, cut.1.with_data));
        }
    }
}
