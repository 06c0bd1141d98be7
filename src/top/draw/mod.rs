//! The picture of a state. Pure: nothing is remembered from one picture to the next. Whatever is drawn went through
//! [`safe`](crate::render::safe) before.

mod look;
mod over;
mod run;
mod table;

use muster_shared::text::counted;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

pub(crate) use self::look::Look;
use super::rows::{self, Tone};
use super::state::{Focus, Over, Said, Top, View};
use crate::live::model::{Link, Model};
use crate::render::{figures, questions};

/// The smallest screen on which something can be seen.
pub(super) const LEAST: (u16, u16) = (40, 10);

/// Most lines of what happened to processes that are shown below them.
const HAPPENED: u16 = 5;

/// Draws the screen.
pub(crate) fn draw(frame: &mut Frame<'_>, top: &Top, model: &Model, look: Look) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        too_small(frame.buffer_mut(), area);
        return;
    }
    let mut page = Page { buffer: frame.buffer_mut(), look };
    let (head, body, foot) = parts(area);
    page.head(head, top, model);
    let body = page.away(body, model);
    match &top.over {
        Over::Help(from) => over::help(&mut page, body, *from),
        Over::Text { title, text, from } => over::text(&mut page, body, title, text, *from),
        _ => view(&mut page, body, top, model),
    }
    let cursor = page.foot(foot, top, model);
    if let Some(cursor) = cursor {
        frame.set_cursor_position(cursor);
    }
}

fn too_small(buffer: &mut Buffer, area: Rect) {
    let text = format!("too small: {}x{}; at least {}x{}", area.width, area.height, LEAST.0, LEAST.1);
    for (row, line) in (area.y..area.bottom()).zip(figures::wrap(&text, area.width.into()).lines()) {
        buffer.set_stringn(area.x, row, line, area.width.into(), Style::new());
    }
}

/// The head, what is between, and the foot.
fn parts(area: Rect) -> (Rect, Rect, Rect) {
    let head = Rect { height: 2, ..area };
    let foot = Rect { y: area.bottom() - 2, height: 2, ..area };
    (head, Rect { y: area.y + 2, height: area.height - 4, ..area }, foot)
}

fn view(page: &mut Page<'_>, area: Rect, top: &Top, model: &Model) {
    match top.view {
        View::Fleet => fleet(page, area, top, model),
        View::Runs => table::table(page, area, &top.runs, rows::runs(model, top.now), true),
        View::Run => run::run(page, area, top, model),
        View::Traffic => traffic(page, area, top, model),
        View::Questions => asked(page, area, top, model),
    }
}

fn fleet(page: &mut Page<'_>, area: Rect, top: &Top, model: &Model) {
    let notes = notes(model, top);
    let happened: Vec<String> = model
        .fleet()
        .happened()
        .map(|happened| format!("{} {}", figures::clock(happened.at), figures::one_line(&happened.text, 300)))
        .take(HAPPENED.into())
        .collect();
    let wanted = u16::try_from(notes.len() + happened.len()).unwrap_or(u16::MAX);
    let below = wanted.min(area.height / 3);
    let list = Rect { height: area.height - below, ..area };
    table::table(page, list, &top.fleet, rows::fleet(model, top.now), true);
    let lines = notes
        .into_iter()
        .map(|note| (Tone::Warn, note))
        .chain(happened.into_iter().map(|line| (Tone::Dim, line)));
    for (row, (tone, line)) in (list.bottom()..area.bottom()).zip(lines) {
        page.line(Rect { y: row, height: 1, ..area }, &line, tone);
    }
}

/// What is to be known beside the processes: machines, providers that do not answer, guards that do not.
fn notes(model: &Model, top: &Top) -> Vec<String> {
    let shown = model.fleet().shown();
    let open = shown.open.iter().map(|breaker| figures::one_line(&breaker.in_words(top.now), 300));
    let silent = shown.silent.iter().map(|line| figures::one_line(line, 300));
    let hosts = shown.hosts.iter().map(crate::render::processes::machine);
    open.chain(silent).chain(hosts).collect()
}

fn traffic(page: &mut Page<'_>, area: Rect, top: &Top, model: &Model) {
    let traffic = model.traffic();
    let follows = if top.traffic.follows { "following" } else { "standing still; f follows" };
    let dropped = match traffic.dropped() {
        0 => String::new(),
        dropped => format!(", {} dropped", figures::count(dropped)),
    };
    let text = format!(
        "{} a second, {} so far{dropped}; {follows}",
        figures::plural(traffic.rate(top.now), "message"),
        figures::count(traffic.count())
    );
    page.line(Rect { height: 1, ..area }, &text, Tone::Dim);
    let list = Rect { y: area.y + 1, height: area.height - 1, ..area };
    table::table(page, list, &top.traffic, rows::traffic(model), true);
}

fn asked(page: &mut Page<'_>, area: Rect, top: &Top, model: &Model) {
    let rows = rows::questions(model, top.now);
    let chosen = top.questions.chosen_of(rows.clone());
    let list = Rect { height: if chosen.is_some() { area.height / 2 } else { area.height }, ..area };
    table::table(page, list, &top.questions, rows, true);
    let Some((run, id)) = chosen else { return };
    let state = model.run(run).and_then(|run| run.state());
    let Some((state, question)) = state.and_then(|state| Some((state, state.questions.get(&id)?))) else {
        return;
    };
    let text = questions::one(state, id, question, top.now);
    let wrapped = figures::wrap(&text, area.width.into());
    for (row, line) in (list.bottom()..area.bottom()).zip(wrapped.lines()) {
        page.line(Rect { y: row, height: 1, ..area }, line, Tone::Plain);
    }
}

/// What is drawn on, and how.
struct Page<'a> {
    buffer: &'a mut Buffer,
    look: Look,
}

impl Page<'_> {
    /// A line of text, cut where it does not fit.
    fn line(&mut self, area: Rect, text: &str, tone: Tone) {
        self.styled(area, text, self.look.of(tone));
    }

    fn styled(&mut self, area: Rect, text: &str, style: Style) {
        let text = figures::cut(text, area.width.into());
        self.buffer.set_stringn(area.x, area.y, &text, area.width.into(), style);
    }

    /// Which fleet it is and how it stands, and which views there are.
    fn head(&mut self, area: Rect, top: &Top, model: &Model) {
        let first = Rect { height: 1, ..area };
        self.buffer.set_style(first, self.look.bar());
        let processes = model.fleet().profiles().count();
        let at_work = model.states().filter(|state| !state.status.is_ended()).count();
        let asked = model.questions().count();
        let state = match model.link() {
            Link::Connecting | Link::Anew(_) => "connecting …".to_owned(),
            Link::Up(url) if model.is_caught_up() => address(url),
            Link::Up(url) => format!("{}, reading …", address(url)),
            Link::Away(_) => "fleet is away".to_owned(),
        };
        let text = format!(
            " muster top  {}, {} at work, {}",
            counted(processes, "process", "processes"),
            figures::plural(at_work as u64, "run"),
            figures::plural(asked as u64, "question"),
        );
        self.styled(first, &text, self.look.bar());
        let room = usize::from(area.width).saturating_sub(text.chars().count() + 2);
        let state = figures::cut(&state, room);
        let width = u16::try_from(state.chars().count()).unwrap_or(0);
        let at = Rect { x: area.right().saturating_sub(width + 1), width, ..first };
        self.styled(at, &state, self.look.bar());
        self.tabs(Rect { y: area.y + 1, height: 1, ..area }, top);
    }

    fn tabs(&mut self, area: Rect, top: &Top) {
        let mut x = area.x;
        for (number, view) in (1..).zip(View::ALL) {
            let of = match (view, top.open) {
                (View::Run, Some(run)) => format!(" {}", run.short()),
                _ => String::new(),
            };
            let text = format!(" {number} {view}{of} ");
            let style = if view == top.view { self.look.chosen() } else { self.look.of(Tone::Plain) };
            let width = u16::try_from(text.chars().count()).unwrap_or(0).min(area.right().saturating_sub(x));
            self.styled(Rect { x, width, ..area }, &text, style);
            x += width;
        }
        let filter = top.filter();
        if !filter.is_empty() && !matches!(top.over, Over::Filter(_)) {
            let text = format!("  /{}", figures::one_line(filter, 40));
            self.styled(
                Rect { x, width: area.right().saturating_sub(x), ..area },
                &text,
                self.look.of(Tone::Warn),
            );
        }
    }

    /// Says that the fleet is away, if it is. Gives what is left of the area.
    fn away(&mut self, area: Rect, model: &Model) -> Rect {
        let Link::Away(why) = model.link() else { return area };
        let text = format!("{}; what is shown is from before", figures::one_line(why, 300));
        self.line(Rect { height: 1, ..area }, &text, Tone::Bad);
        Rect { y: area.y + 1, height: area.height - 1, ..area }
    }

    /// What is typed or was said, and which keys there are. Gives where the cursor stands, if somebody types.
    fn foot(&mut self, area: Rect, top: &Top, model: &Model) -> Option<(u16, u16)> {
        let (first, last) = (Rect { height: 1, ..area }, Rect { y: area.y + 1, height: 1, ..area });
        let cursor = match &top.over {
            Over::Filter(editor) => Some(over::typed(self, first, "/", editor)),
            Over::Command(editor) => Some(over::typed(self, first, ":", editor)),
            Over::Typing { what, editor, .. } => {
                Some(over::typed(self, first, &format!("{}: ", figures::one_line(what, 70)), editor))
            }
            Over::Confirm(order) => {
                self.line(first, &format!("{}? y does it, any other key does not", order.what), Tone::Warn);
                None
            }
            Over::Nothing | Over::Help(_) | Over::Text { .. } => {
                if let Some(Said { text, is_bad }) = &top.said {
                    let tone = if *is_bad { Tone::Bad } else { Tone::Good };
                    self.line(first, &figures::one_line(text, 400), tone);
                }
                None
            }
        };
        let keys = match &top.said {
            // What is wrong with what is typed stands where the keys do.
            Some(said) if cursor.is_some() && said.is_bad => figures::one_line(&said.text, 200),
            _ => over::keys(top, model),
        };
        self.line(last, &keys, Tone::Dim);
        cursor
    }
}

/// An address without what it is reached by, and without passwords.
fn address(url: &str) -> String {
    let shown = muster_shared::secret::without_passwords(url).into_owned();
    figures::one_line(shown.split_once("://").map_or(shown.as_str(), |(_, rest)| rest), 60)
}

/// Whether the keys go to what a task does.
fn is_on_detail(top: &Top) -> bool {
    top.focus == Focus::Detail
}
