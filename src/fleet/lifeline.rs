//! What a command that waits holds on to: whether the fleet that it uses is still there, and where it is now.

use std::collections::VecDeque;
use std::time::Duration;

use muster_bus::Bus;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use super::state::{FleetFolder, FleetState, MemberState};
use crate::app::App;
use crate::output;
use crate::render::figures;

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(250);

/// How often at least what the supervisor says is read, as long as the bus is there: whatever ends a fleet ends its bus.
const READ: Duration = Duration::from_secs(1);

/// A bus that is away for less than this is not worth a word: a server that is started again is back by then.
const WORTH_A_WORD: Duration = Duration::from_secs(2);

/// How many times as long a bus elsewhere is waited for: nobody here can say that it has ended.
const ELSEWHERE: u32 = 6;

/// What is to be known of the fleet that is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum News {
    /// Something about its processes, for a person.
    Said(String),
    /// Something about the way to it, which a person has to know.
    Warned(String),
    /// No process is left of what every run needs.
    Crippled {
        /// The process.
        name: String,
        /// How it died last.
        how: String,
    },
    /// The fleet is up at another address.
    Moved(String),
    /// The fleet is gone, and did not come back in time.
    Lost(String),
}

/// Looks after the way to a fleet.
#[derive(Debug)]
pub(crate) struct Lifeline {
    folder: FleetFolder,
    url: String,
    is_local: bool,
    limit: Duration,
    known: Option<FleetState>,
    away: Option<Away>,
    news: VecDeque<News>,
    look: Interval,
    read: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Away {
    since: Instant,
    told: bool,
}

/// Where the fleet is, as far as can be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    /// Where it was, and the bus answers.
    Here,
    /// Where it was, and the bus is away.
    CutOff,
    /// Up at another address.
    At(String),
    /// Not up.
    Gone,
    /// On a bus of its own that is away.
    Unreachable,
}

/// What follows.
#[derive(Debug, Clone, PartialEq, Eq)]
enum LifelineDecision {
    Fine,
    Wait,
    Tell(String),
    Move(String),
    GiveUp(String),
}

impl Lifeline {
    /// For the fleet at this URL.
    pub(crate) fn new(app: &App, url: &str) -> Self {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            folder: app.fleet.clone(),
            url: url.to_owned(),
            is_local: app.settings().bus.url.is_none(),
            limit: app.settings().ask.lost_limit,
            known: None,
            away: None,
            news: VecDeque::new(),
            look,
            read: None,
        }
    }

    /// The next news. May be given up and asked again at any time.
    pub(crate) async fn next(&mut self, bus: &Bus) -> News {
        loop {
            if let Some(news) = self.news.pop_front() {
                return news;
            }
            self.look.tick().await;
            let is_connected = bus.is_connected();
            let was_read = self.read.is_some_and(|at| at.elapsed() < READ);
            if is_connected && was_read && self.away.is_none() {
                continue;
            }
            self.read = Some(Instant::now());
            self.take(is_connected);
        }
    }

    /// Waits until the fleet is up at another address, and notes in the meantime what happens. May be given up and asked
    /// again at any time.
    ///
    /// # Errors
    /// Why the fleet is lost; it may come back later.
    pub(crate) async fn moved(&mut self, bus: &Bus) -> Result<String, String> {
        loop {
            match self.next(bus).await {
                News::Moved(url) => return Ok(url),
                News::Warned(text) => output::note(&text),
                News::Lost(why) => return Err(why),
                News::Said(_) | News::Crippled { .. } => {}
            }
        }
    }

    /// It was found at another address, and is followed there.
    pub(crate) fn follow(&mut self, url: &str) {
        url.clone_into(&mut self.url);
        (self.known, self.away, self.read) = (None, None, None);
        self.news.clear();
    }

    /// Whether it was told that the fleet is away, and not yet that it is there again.
    pub(crate) fn is_away(&self) -> bool {
        self.away.is_some_and(|away| away.told)
    }

    fn take(&mut self, connected: bool) {
        let state = if self.is_local { self.folder.live() } else { None };
        let seen = match &state {
            Some(state) if state.url != self.url => Seen::At(state.url.clone()),
            None if self.is_local => Seen::Gone,
            _ if connected => Seen::Here,
            Some(_) => Seen::CutOff,
            None => Seen::Unreachable,
        };
        let told = self.away.is_some_and(|away| away.told);
        let since = self.away.map(|away| away.since.elapsed()).unwrap_or_default();
        match judge(&seen, since, told, self.limit) {
            LifelineDecision::Fine => {
                if told {
                    self.news.push_back(News::Warned("the fleet is there again".to_owned()));
                }
                self.away = None;
            }
            LifelineDecision::Wait => {
                self.away = self.away.or(Some(Away { since: Instant::now(), told: false }))
            }
            LifelineDecision::Tell(text) => {
                self.news.push_back(News::Warned(text));
                self.away =
                    Some(Away { since: self.away.map_or_else(Instant::now, |away| away.since), told: true });
            }
            LifelineDecision::Move(url) => self.news.push_back(News::Moved(url)),
            LifelineDecision::GiveUp(why) => self.news.push_back(News::Lost(why)),
        }
        if let Some(now) = state {
            if let Some(before) = &self.known {
                self.news.extend(changes(before, &now));
            }
            self.known = Some(now);
        }
    }
}

/// What follows from what is seen. Pure.
fn judge(seen: &Seen, away_for: Duration, told: bool, limit: Duration) -> LifelineDecision {
    match seen {
        Seen::Here => LifelineDecision::Fine,
        Seen::At(url) => LifelineDecision::Move(url.clone()),
        Seen::CutOff if !told && away_for >= WORTH_A_WORD => {
            LifelineDecision::Tell("cut off from the bus of this fleet; trying again …".to_owned())
        }
        // Its supervisor starts the server again, or ends.
        Seen::CutOff => LifelineDecision::Wait,
        Seen::Gone if away_for >= limit => LifelineDecision::GiveUp(format!(
            "the fleet is gone and did not come back within {}",
            figures::span(limit)
        )),
        Seen::Gone if !told && away_for >= LOOK => {
            let waited = figures::span(limit);
            LifelineDecision::Tell(format!(
                "the fleet is gone; waiting {waited} for `muster up` to bring one back …"
            ))
        }
        Seen::Gone => LifelineDecision::Wait,
        Seen::Unreachable if away_for >= limit * ELSEWHERE => {
            let waited = figures::span(limit * ELSEWHERE);
            LifelineDecision::GiveUp(format!(
                "the bus cannot be reached any more, and did not come back within {waited}"
            ))
        }
        Seen::Unreachable if !told && away_for >= WORTH_A_WORD => {
            LifelineDecision::Tell("cut off from the bus; trying again …".to_owned())
        }
        Seen::Unreachable => LifelineDecision::Wait,
    }
}

/// What a person is told of a fleet's processes; nothing of what is as it should be. Pure.
fn changes(before: &FleetState, now: &FleetState) -> Vec<News> {
    let mut news = Vec::new();
    for member in &now.members {
        let earlier = before.members.iter().find(|other| other.name == member.name);
        let (restarts, given_up) = earlier.map_or((0, false), |member| (member.restarts, member.given_up));
        let how = || member.how.clone().unwrap_or_else(|| "died".to_owned());
        if member.given_up && !given_up {
            let text = format!("{} {}, and too often: it is not started again", member.name, how());
            news.push(News::Said(text));
            if is_crippled(&now.members, member) {
                news.push(News::Crippled { name: member.name.clone(), how: how() });
            }
        } else if member.restarts > restarts {
            news.push(News::Said(format!("{} {}; it is started again", member.name, how())));
        }
    }
    let refused = now.refused.iter().filter(|file| !before.refused.contains(file));
    news.extend(refused.map(|file| News::Said(format!("an agent file is left out: {}", file.reason))));
    news
}

/// Whether with this member the last one of its kind is given up, of a kind that no run can do without.
fn is_crippled(members: &[MemberState], lost: &MemberState) -> bool {
    let needed = ["orchestrator", "nats-server"].into_iter().find(|kind| lost.name.starts_with(kind));
    needed.is_some_and(|kind| {
        members.iter().filter(|member| member.name.starts_with(kind)).all(|member| member.given_up)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::process::ProcessRef;

    const LIMIT: Duration = Duration::from_secs(10);
    const SECOND: Duration = Duration::from_secs(1);

    fn fleet(members: Vec<MemberState>) -> FleetState {
        let supervisor = ProcessRef { pid: 1, started: 1 };
        FleetState { members, ..FleetState::new("nats://127.0.0.1:1".into(), supervisor, 1) }
    }

    fn member(name: &str, restarts: u32, given_up: bool) -> MemberState {
        let how = (restarts > 0 || given_up).then(|| "was killed by SIGKILL".to_owned());
        MemberState { restarts, given_up, how, ..MemberState::new(name.to_owned(), None) }
    }

    #[test]
    fn what_is_gone_is_told_within_seconds_and_given_up_in_the_end() {
        let judged = |seen: &Seen, away: Duration, told: bool| judge(seen, away, told, LIMIT);
        assert_eq!(judged(&Seen::Here, LIMIT * 9, true), LifelineDecision::Fine);
        assert_eq!(judged(&Seen::At("b".into()), Duration::ZERO, false), LifelineDecision::Move("b".into()));
        assert_eq!(judged(&Seen::Gone, Duration::ZERO, false), LifelineDecision::Wait);
        assert!(matches!(judged(&Seen::Gone, SECOND, false), LifelineDecision::Tell(_)));
        assert_eq!(judged(&Seen::Gone, SECOND, true), LifelineDecision::Wait, "it is told once");
        assert!(matches!(judged(&Seen::Gone, LIMIT, true), LifelineDecision::GiveUp(_)));
        assert_eq!(judged(&Seen::CutOff, SECOND, false), LifelineDecision::Wait);
        assert!(matches!(judged(&Seen::CutOff, SECOND * 2, false), LifelineDecision::Tell(_)));
        assert_eq!(judged(&Seen::CutOff, LIMIT * 9, true), LifelineDecision::Wait, "its supervisor lives");
        assert!(matches!(judged(&Seen::Unreachable, SECOND * 2, false), LifelineDecision::Tell(_)));
        assert_eq!(judged(&Seen::Unreachable, LIMIT, true), LifelineDecision::Wait);
        assert!(matches!(judged(&Seen::Unreachable, LIMIT * ELSEWHERE, true), LifelineDecision::GiveUp(_)));
    }

    #[test]
    fn of_processes_only_what_went_wrong_is_told() {
        let before = fleet(vec![member("orchestrator-1", 0, false), member("worker-1", 0, false)]);
        assert_eq!(changes(&before, &before), []);
        let died = fleet(vec![member("orchestrator-1", 0, false), member("worker-1", 1, false)]);
        let said = changes(&before, &died);
        assert!(matches!(&said[..], [News::Said(text)] if text.contains("worker-1 was killed")), "{said:?}");
        let given_up = fleet(vec![member("orchestrator-1", 5, true), member("worker-1", 1, false)]);
        let said = changes(&died, &given_up);
        assert!(matches!(&said[..], [News::Said(_), News::Crippled { .. }]), "{said:?}");
        let two = fleet(vec![member("orchestrator-1", 5, true), member("orchestrator-2", 0, false)]);
        let one = changes(&fleet(vec![member("orchestrator-2", 0, false)]), &two);
        assert!(matches!(&one[..], [News::Said(_)]), "another one is left: {one:?}");
    }
}
