//! Keys and certificates of the fleet's own server that come to their end while it runs.

use muster_bus::credentials::{FleetKeys, FleetTls, is_grace_over};
use muster_bus::server::{ServerError, reload};

use super::Watcher;
use crate::app::now;
use crate::fleet::pass::Desk;

impl Watcher {
    /// Drops the signing keys of before a rotation once their time is over, and has the server cut off whoever still comes by
    /// them.
    pub(super) fn drop_retired_keys(&self) {
        let Some(Desk::Own(desk)) = self.desk.as_ref().filter(|_| self.server.is_some()) else { return };
        if !is_grace_over(desk.keys.folder(), now()) {
            return;
        }
        match self.dropped(desk.keys.folder()) {
            Ok(0) => {}
            Ok(dropped) => tracing::info!(dropped, "signing keys of before count no more"),
            Err(error) => tracing::warn!(%error, "signing keys of before cannot be dropped"),
        }
    }

    fn dropped(&self, folder: &std::path::Path) -> Result<usize, ServerError> {
        let dropped = FleetKeys::open(folder)?.map_or(Ok(0), |keys| keys.drop_retired(false))?;
        self.tell_server()?;
        Ok(dropped)
    }

    /// Makes the server's certificate anew where it is time.
    pub(super) fn renew_certificate(&self) {
        let Some(server) = self.server.as_ref().filter(|server| server.tls().is_some()) else { return };
        let keys = server.keys();
        let renewed = self.app.settings().server.certificate_names().and_then(|names| {
            let (tls, is_new) = FleetTls::open_or_make(keys.folder(), &names)?;
            if server.wants_certificates() {
                tls.client()?;
            }
            if is_new { self.tell_server().map(|()| true) } else { Ok(false) }
        });
        match renewed {
            Ok(true) => tracing::info!("the server has a new certificate"),
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "the server's certificate cannot be looked at"),
        }
    }

    fn tell_server(&self) -> Result<(), ServerError> {
        reload(&self.app.beside_fleet(&self.app.settings().server.store_dir)).map(|_| ())
    }
}
