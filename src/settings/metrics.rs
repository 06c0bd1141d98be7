//! Figures of processes for Prometheus.

use std::net::SocketAddr;

use muster_shared::settings;

settings! {
    /// Figures of processes for Prometheus. Spans for OpenTelemetry are switched on by the usual variables (OTEL_EXPORTER_OTLP_ENDPOINT, …).
    #[derive(PartialEq, Eq)]
    pub(crate) struct MetricsSettings {
        /// The address at which a process of a fleet serves its figures (/metrics); port 0 takes any that is free, which
        /// `muster ps --json` tells. Of a local fleet, it is the address of `muster up`, with the figures of the fleet and the
        /// addresses of its processes (/targets): these take free ports beside it. Nothing is served where it is not set.
        pub(crate) listen: Option<SocketAddr> = None => text().example("\"127.0.0.1:9464\""); Fleet Trust,
    }
}
