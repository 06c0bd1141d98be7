//! The way to a proxy out of a network namespace: the loopback device is set up, and a socket listens there. The socket is
//! handed to whoever is outside; packets never leave the namespace.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use crate::wire::{self, Failure, Word};

/// Sets the loopback device up, listens there, and hands the socket over. Gives its port.
///
/// # Errors
/// When the kernel does not let us.
pub(super) fn open(control: &mut UnixStream) -> Result<u16, Failure> {
    set_up()?;
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Failure::at("listening for the program"))?;
    let port = listener.local_addr().map_err(Failure::at("listening for the program"))?.port();
    wire::send(control, &Word::Listening).map_err(Failure::at("handing a socket over"))?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    let sockets = [listener.as_fd()];
    if !beside.push(SendAncillaryMessage::ScmRights(&sockets)) {
        return Err(Failure::Broken("handing a socket over: no room".to_owned()));
    }
    rustix::net::sendmsg(&*control, &[IoSlice::new(&[0])], &mut beside, SendFlags::empty())
        .map_err(|error| Failure::Broken(format!("handing a socket over: {error}")))?;
    Ok(port)
}

fn set_up() -> Result<(), Failure> {
    let failed = Failure::of("setting up the loopback device");
    let netlink =
        socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)
            .map_err(&failed)?;
    send(netlink.as_raw_fd(), &request(), MsgFlags::empty()).map_err(&failed)?;
    let mut answer = [0; 1024];
    let length = recv(netlink.as_raw_fd(), &mut answer, MsgFlags::empty()).map_err(&failed)?;
    match error_in(answer.get(..length).unwrap_or_default()) {
        Some(0) => Ok(()),
        code => Err(Failure::Broken(format!("setting up the loopback device: the kernel says {code:?}"))),
    }
}

/// `RTM_NEWLINK` for device 1 with `IFF_UP` set, to be acknowledged; see rtnetlink(7) and netlink(7).
fn request() -> Vec<u8> {
    const NEW_LINK: u16 = 16;
    const REQUEST_AND_ACKNOWLEDGE: u16 = 0x1 | 0x4;
    const LOOPBACK: i32 = 1;
    const UP: u32 = 1;
    let mut bytes = Vec::with_capacity(32);
    bytes.extend(32_u32.to_ne_bytes());
    bytes.extend(NEW_LINK.to_ne_bytes());
    bytes.extend(REQUEST_AND_ACKNOWLEDGE.to_ne_bytes());
    // The number of the message, and of whom it comes from; then the family and kind of the device, which are open.
    bytes.extend([0; 4 + 4 + 4]);
    bytes.extend(LOOPBACK.to_ne_bytes());
    bytes.extend(UP.to_ne_bytes());
    bytes.extend(UP.to_ne_bytes());
    bytes
}

/// The code in an acknowledgement, 0 for success; nothing where it is none.
fn error_in(answer: &[u8]) -> Option<i32> {
    const ERROR: u16 = 2;
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let code = i32::from_ne_bytes(answer.get(16..20)?.try_into().ok()?);
    (kind == ERROR).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_as_long_as_it_says_and_only_an_acknowledgement_is_read_as_one() {
        assert_eq!(request().len(), 32);
        let mut answer = vec![0; 36];
        assert_eq!(error_in(&answer), None);
        answer[4] = 2;
        assert_eq!(error_in(&answer), Some(0));
        answer[16..20].copy_from_slice(&(-1_i32).to_ne_bytes());
        assert_eq!(error_in(&answer), Some(-1));
        assert_eq!(error_in(&answer[..10]), None);
    }
}
