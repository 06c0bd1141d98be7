//! `muster metrics`: figures of the fleet as a whole, and where those of its processes are.

use std::net::SocketAddr;

use muster_bus::Bus;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::args::MetricsArgs;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::signals::StopSignals;
use crate::telemetry::{self, Form};

/// Prints or serves the figures of the fleet.
pub(super) async fn metrics(app: &App, args: &MetricsArgs) -> Result<Exit, Failure> {
    let stop = StopSignals::listen()?;
    let bus = app.connect("reader").await?;
    if let Some(at) = args.listen {
        let door = Door::open(at).await?;
        output::note!(
            "figures at http://{0}/metrics, targets at http://{0}/targets; Ctrl-C stops",
            door.at()
        );
        let stop = stop.into_token();
        let serving = door.serve(app.clone(), bus.clone(), stop.clone());
        tokio::select! {
            () = stop.cancelled() => {}
            error = bus.failed() => return Err(error.into()),
        }
        let _ended = serving.await;
        return Ok(Exit::Completed);
    }
    if args.targets {
        output::json(&telemetry::targets(&bus).await?)?;
        return Ok(Exit::Completed);
    }
    let members = app.fleet.live().map(|state| state.members).unwrap_or_default();
    let form = if args.openmetrics { Form::Open } else { Form::Plain };
    output::line(telemetry::fleet_figures(&bus, &members, form).await.trim_end())?;
    Ok(Exit::Completed)
}

/// Where the figures of the fleet are asked for.
pub(crate) struct Door {
    listener: TcpListener,
    at: SocketAddr,
}

impl Door {
    /// Takes its place.
    ///
    /// # Errors
    /// When it cannot be had.
    pub(crate) async fn open(at: SocketAddr) -> Result<Self, Failure> {
        let listener = telemetry::listen(at).await.map_err(|why| {
            Failure::failed(why)
                .help("name an address of this machine and a port that is free; port 0 takes any")
        })?;
        let at = listener.local_addr().unwrap_or(at);
        Ok(Self { listener, at })
    }

    /// Where it is.
    pub(crate) const fn at(&self) -> SocketAddr {
        self.at
    }

    /// Answers until told to stop.
    pub(crate) fn serve(self, app: App, bus: Bus, stop: CancellationToken) -> JoinHandle<()> {
        tokio::spawn(telemetry::serve(self.listener, telemetry::fleet_paths(app, bus), stop))
    }
}
