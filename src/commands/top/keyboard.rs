//! Keys from the terminal.

use ratatui::crossterm::event::{self, Event as Typed, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;

use crate::exit::{Failure, failed};
use crate::top::{Event, Key};

/// Most keys that wait to be taken.
const MOST_WAITING: usize = 256;

/// What came from the terminal.
pub(super) enum Pressed {
    /// A key, a text, or another size.
    Event(Event),
    /// Nothing more will come.
    Failed(String),
}

/// Begins to listen, on a thread of its own, which ends with the process: a read from a terminal cannot be called off.
pub(super) fn listen() -> Result<mpsc::Receiver<Pressed>, Failure> {
    let (sender, keys) = mpsc::channel(MOST_WAITING);
    let listen = move || {
        loop {
            let pressed = match event::read() {
                Ok(typed) => match understood(typed) {
                    Some(event) => Pressed::Event(event),
                    None => continue,
                },
                Err(error) => Pressed::Failed(error.to_string()),
            };
            let is_last = matches!(pressed, Pressed::Failed(_));
            if sender.blocking_send(pressed).is_err() || is_last {
                return;
            }
        }
    };
    let begun = std::thread::Builder::new().name("keys".to_owned()).spawn(listen);
    begun.map(|_| keys).map_err(|error| failed!("cannot listen for keys: {error}"))
}

fn understood(typed: Typed) -> Option<Event> {
    match typed {
        Typed::Key(key) if key.kind != KeyEventKind::Release => self::key(key).map(Event::Key),
        Typed::Paste(text) => Some(Event::Paste(text)),
        Typed::Resize(width, height) => Some(Event::Resize(width, height)),
        _ => None,
    }
}

fn key(key: KeyEvent) -> Option<Key> {
    let has = |modifier| key.modifiers.contains(modifier);
    Some(match key.code {
        // What Alt means nobody says here.
        KeyCode::Char(_) if has(KeyModifiers::ALT) => return None,
        KeyCode::Char(c) if has(KeyModifiers::CONTROL) => Key::Ctrl(c.to_ascii_lowercase()),
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Esc,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Delete => Key::Delete,
        KeyCode::F(number) => Key::F(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_what_they_are_called() {
        let pressed = |code, modifiers| key(KeyEvent::new(code, modifiers));
        for (code, modifiers, wanted) in [
            (KeyCode::Char('K'), KeyModifiers::SHIFT, Some(Key::Char('K'))),
            (KeyCode::Char('K'), KeyModifiers::CONTROL, Some(Key::Ctrl('k'))),
            (KeyCode::Char('k'), KeyModifiers::ALT, None),
            (KeyCode::F(9), KeyModifiers::NONE, Some(Key::F(9))),
            (KeyCode::Insert, KeyModifiers::NONE, None),
        ] {
            assert_eq!(pressed(code, modifiers), wanted, "{code:?}");
        }
        let released = KeyEvent::new_with_kind(KeyCode::Enter, KeyModifiers::NONE, KeyEventKind::Release);
        assert!(understood(Typed::Key(released)).is_none(), "it was pressed once");
    }
}
