//! Where the store is, and how a client authenticates there.

use std::{env, fmt, fs, path::PathBuf, time::Duration};

use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::{Error, client::why};

/// The variable that holds the password, where there is no password file.
const PASSWORD: &str = "DOORWAY_ETCD_PASSWORD";

/// Where the store is, and how a client authenticates there.
///
/// ```
/// use std::time::Duration;
/// use doorway_etcd::Config;
/// let config = Config::new(["10.0.0.1:2379", "10.0.0.2:2379", "10.0.0.3:2379"])
///     .with_ca("/etc/doorway/ca.pem")
///     .with_user("doorway")
///     .with_password_file("/etc/doorway/password")
///     .with_ttl(Duration::from_secs(5));
/// ```
#[derive(Clone)]
pub struct Config {
    endpoints: Vec<String>,
    ca: Option<PathBuf>,
    identity: Option<(PathBuf, PathBuf)>,
    user: Option<String>,
    password_file: Option<PathBuf>,
    pub(crate) ttl: Duration,
    pub(crate) limit: Duration,
    pub(crate) patience: Duration,
    pub(crate) command: String,
}

impl Config {
    /// Creates a configuration for these endpoints: `HOST:PORT`, `http://HOST:PORT` or
    /// `https://HOST:PORT`. They are members of one cluster.
    pub fn new<E: Into<String>>(endpoints: impl IntoIterator<Item = E>) -> Self {
        Self {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            ca: None,
            identity: None,
            user: None,
            password_file: None,
            ttl: Duration::from_secs(10),
            limit: Duration::from_millis(700),
            patience: Duration::from_secs(5),
            command: env::args().collect::<Vec<_>>().join(" "),
        }
    }

    /// Uses TLS, and trusts a server whose certificate one of these authorities has signed (PEM).
    /// Without this, TLS trusts the authorities of the system.
    #[must_use]
    pub fn with_ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.ca = Some(file.into());
        self
    }

    /// Uses TLS, and identifies this client by this certificate and key (PEM).
    #[must_use]
    pub fn with_identity(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        self.identity = Some((certificate.into(), key.into()));
        self
    }

    /// Sets the user. Its password comes from a [file](Self::with_password_file) or from
    /// `$DOORWAY_ETCD_PASSWORD`.
    #[must_use]
    pub fn with_user(mut self, name: impl Into<String>) -> Self {
        self.user = Some(name.into());
        self
    }

    /// Sets the file with the user's password: all of it except the end of its last line.
    #[must_use]
    pub fn with_password_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.password_file = Some(file.into());
        self
    }

    /// Sets how long a lease lasts without a message from this client. Other clients wait that long
    /// for a client that was killed. The default is 10 s. Whole seconds, and no less than etcd
    /// grants (2 s with its own settings).
    #[must_use]
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets how long one endpoint may take to answer before another is asked. The default is 700
    /// ms.
    #[must_use]
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Sets how long a request may take on all endpoints together before it fails. The default is 5
    /// s, which is longer than the election of a new leader takes.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets the command that other clients see for this process. The default is its command line.
    #[must_use]
    pub fn with_command(mut self, command: impl Into<String>) -> Self {
        self.command = command.into();
        self
    }

    /// Returns the endpoints as the user wrote them.
    pub(crate) fn addresses(&self) -> String {
        self.endpoints.join(",")
    }

    pub(crate) fn endpoints(&self) -> Result<Vec<Endpoint>, Error> {
        let tls = self.tls()?;
        let default = if self.ca.is_some() || self.identity.is_some() { "https" } else { "http" };
        let endpoints: Vec<_> =
            self.endpoints.iter().map(|text| self.endpoint(text, default, &tls)).collect();
        if endpoints.is_empty() {
            Err(Error::Endpoint(String::new()))
        } else {
            endpoints.into_iter().collect()
        }
    }

    fn endpoint(
        &self,
        text: &str,
        default: &str,
        tls: &ClientTlsConfig,
    ) -> Result<Endpoint, Error> {
        let wrong = || Error::Endpoint(text.into());
        let uri =
            if text.contains("://") { text.to_string() } else { format!("{default}://{text}") };
        let endpoint = Endpoint::from_shared(uri).map_err(|_| wrong())?;
        let has_port = endpoint.uri().port_u16().is_some();
        let endpoint = match endpoint.uri().scheme_str() {
            Some("http") if default == "http" && has_port => endpoint,
            Some("https") if has_port => endpoint
                .tls_config(tls.clone())
                .map_err(|error| Error::Tls(why("it is refused", &error)))?,
            Some("http") if has_port => return Err(Error::Tls(format!("{text} is without it"))),
            _ => return Err(wrong()),
        };
        Ok(endpoint.connect_timeout(self.limit).tcp_nodelay(true))
    }

    fn tls(&self) -> Result<ClientTlsConfig, Error> {
        let mut tls = ClientTlsConfig::new();
        tls = match &self.ca {
            Some(file) => tls.ca_certificate(Certificate::from_pem(read(file)?)),
            None => tls.with_native_roots(),
        };
        if let Some((certificate, key)) = &self.identity {
            tls = tls.identity(Identity::from_pem(read(certificate)?, read(key)?));
        }
        Ok(tls)
    }

    /// Returns user and password.
    pub(crate) fn login(&self) -> Result<Option<(String, String)>, Error> {
        let Some(user) = &self.user else { return Ok(None) };
        let password = match &self.password_file {
            Some(file) => {
                let text = read(file)?;
                let text = text.strip_suffix('\n').unwrap_or(&text);
                text.strip_suffix('\r').unwrap_or(text).to_string()
            }
            None => env::var(PASSWORD).map_err(|_| Error::NoPassword(user.clone()))?,
        };
        Ok(Some((user.clone(), password)))
    }
}

fn read(file: &PathBuf) -> Result<String, Error> {
    fs::read_to_string(file).map_err(|source| Error::File { path: file.clone(), source })
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("endpoints", &self.endpoints)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_has_a_host_and_a_port() {
        let uris = |config: Config| {
            let endpoints = config.endpoints()?;
            Ok::<_, Error>(
                endpoints.iter().map(|endpoint| endpoint.uri().to_string()).collect::<Vec<_>>(),
            )
        };
        assert_eq!(
            uris(Config::new(["a:1", "http://b:2"])).expect("two"),
            ["http://a:1/", "http://b:2/"]
        );
        for wrong in ["", "a", "http://a", "ftp://a:1", "a:b:c", "http://a:1:2"] {
            assert!(
                matches!(uris(Config::new([wrong])), Err(Error::Endpoint(text)) if text == wrong),
                "{wrong}"
            );
        }
        assert!(matches!(uris(Config::new(Vec::<String>::new())), Err(Error::Endpoint(_))));
    }

    #[test]
    fn a_password_is_what_the_file_says_without_the_end_of_the_line() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("password");
        fs::write(&file, " se cret \r\n").expect("a file");
        let config = Config::new(["a:1"]).with_user("me").with_password_file(&file);
        assert_eq!(config.login().expect("a password"), Some(("me".into(), " se cret ".into())));
        let missing = Config::new(["a:1"]).with_ca(directory.path().join("none"));
        assert!(matches!(missing.endpoints(), Err(Error::File { .. })));
    }
}
