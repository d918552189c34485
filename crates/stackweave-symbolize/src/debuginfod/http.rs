//! Downloads by HTTP and HTTPS.

use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use ureq::Agent;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use super::cache::UnfinishedDownload;
use super::error::DebuginfodError;

/// The files in which systems store trusted certificates.
const TRUSTED: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
const MAX_REDIRECTS: u32 = 5;

/// A client, for one concurrent download per thread.
#[derive(Debug, Default)]
pub(super) struct Client {
    agent: OnceLock<Agent>,
    /// Certificates to trust instead of the system's.
    trusted: Option<PathBuf>,
}

impl Client {
    #[cfg(test)]
    pub(super) fn trusting(certificates: PathBuf) -> Self {
        Self { agent: OnceLock::new(), trusted: Some(certificates) }
    }

    /// Downloads `url` to `out`, in at most `limit`.
    pub(super) fn download(
        &self,
        url: &str,
        limit: Duration,
        max_size: u64,
        out: &mut UnfinishedDownload,
    ) -> Result<(), DebuginfodError> {
        let agent = self.agent.get_or_init(|| self.new_agent());
        // Redirects from an encrypted server must not lead to an unencrypted one.
        let is_encrypted = url.starts_with("https://");
        let request = agent.get(url).config().https_only(is_encrypted).timeout_global(Some(limit)).build();
        let request = request.header("X-DEBUGINFOD-MAXSIZE", max_size.to_string());
        let response = request.call().map_err(|error| fault(&error, limit))?;
        match response.status().as_u16() {
            200 => {}
            404 => return Err(DebuginfodError::NotFound),
            // The reply of elfutils' server if the file exceeds the maximum size of the request.
            406 => return Err(DebuginfodError::TooLarge(max_size)),
            status => return Err(DebuginfodError::Status(status)),
        }
        let stated = response.headers().get("X-DEBUGINFOD-SIZE").and_then(|size| size.to_str().ok()?.parse().ok());
        let stated: Option<u64> = stated.or(response.body().content_length());
        if stated.is_some_and(|size| size > max_size) {
            return Err(DebuginfodError::TooLarge(max_size));
        }
        let mut body = response.into_body().into_reader();
        let mut buffer = vec![0; 64 << 10];
        loop {
            let length = match body.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(fault(&error.into(), limit)),
            };
            if out.length() + length as u64 > max_size {
                return Err(DebuginfodError::TooLarge(max_size));
            }
            out.write_all(&buffer[..length])?;
        }
        if stated.is_some_and(|size| size != out.length()) { Err(DebuginfodError::WrongLength) } else { Ok(()) }
    }

    /// Connections are not kept: a fork of this process would share them.
    fn new_agent(&self) -> Agent {
        let tls = TlsConfig::builder().root_certs(self.root_certificates()).build();
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(MAX_REDIRECTS)
            .max_idle_connections(0)
            .user_agent(concat!("stackweave/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls);
        config.build().new_agent()
    }

    /// Returns the certificates that the system trusts; Mozilla's list if they are not found.
    fn root_certificates(&self) -> RootCerts {
        let named = self.trusted.clone().or_else(|| std::env::var_os("SSL_CERT_FILE").map(PathBuf::from));
        let files = named.into_iter().chain(TRUSTED.map(PathBuf::from));
        let found = files.map(|file| certificates(&file)).find(|certificates| !certificates.is_empty());
        found.map_or(RootCerts::WebPki, |certificates| RootCerts::new_with_certs(&certificates))
    }
}

fn certificates(file: &Path) -> Vec<Certificate<'static>> {
    let pem = std::fs::read(file).unwrap_or_default();
    let certificate = |item| if let Ok(PemItem::Certificate(certificate)) = item { Some(certificate) } else { None };
    parse_pem(&pem).filter_map(certificate).collect()
}

fn fault(error: &ureq::Error, limit: Duration) -> DebuginfodError {
    match error {
        ureq::Error::Timeout(_) => DebuginfodError::Late(limit),
        ureq::Error::Io(error) if error.kind() == ErrorKind::TimedOut => DebuginfodError::Late(limit),
        ureq::Error::Io(error) if error.kind() == ErrorKind::UnexpectedEof => DebuginfodError::WrongLength,
        error => DebuginfodError::Connection(error.to_string()),
    }
}
