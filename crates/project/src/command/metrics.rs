//! `--metrics`: binds the server of metrics, with errors that name the flags.

use std::net::SocketAddr;

use huntsman_serve::{BindError, MetricsServer, Reach};

use super::exit::{Failure, Outcome};

/// Binds the address of `--metrics`. With `--metrics-public`, other machines may reach it.
///
/// # Errors
/// The address is not loopback and `is_public` is false, or cannot be bound.
pub async fn bind(address: SocketAddr, is_public: bool) -> Outcome<MetricsServer> {
    let reach = if is_public { Reach::Public } else { Reach::Loopback };
    MetricsServer::bind(address, reach).await.map_err(|error| {
        Failure::usage(match error {
            BindError::Public => format!(
                "--metrics {address}: other machines could read this; use 127.0.0.1:{}, or add --metrics-public",
                address.port()
            ),
            BindError::Io(error) => format!("--metrics {address}: {error}"),
        })
    })
}
