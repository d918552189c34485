//! Settings from the environment, and the behaviour of servers.

use std::path::Path;

use super::*;
use crate::test_folder::TestFolder;

#[cfg(feature = "debuginfod")]
#[path = "server_tests.rs"]
mod server;

fn id() -> BuildId {
    BuildId::new(&[0xab, 0xcd, 0xef]).unwrap()
}

fn from_pairs(pairs: &[(&str, &str)]) -> Option<Debuginfod> {
    Debuginfod::from_variables(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
}

#[test]
fn the_environment_sets_servers_folder_and_limits() {
    let urls = ("DEBUGINFOD_URLS", " ima:enforcing https://one/  http://two\n");
    let client = from_pairs(&[urls, ("HOME", "/houses/me")]).unwrap();
    assert_eq!(client.servers, ["https://one/", "http://two"]);
    assert_eq!(client.cache.path(&id()), Path::new("/houses/me/.cache/debuginfod_client/abcdef/debuginfo"));
    assert_eq!((client.limit, client.max_size), (DEFAULT_LIMIT, DEFAULT_MAX_SIZE));
    let xdg = ("XDG_CACHE_HOME", "/xdg");
    let client = from_pairs(&[urls, xdg, ("HOME", "/h"), ("DEBUGINFOD_TIMEOUT", "3")]).unwrap();
    assert_eq!(client.cache.path(&id()), Path::new("/xdg/debuginfod_client/abcdef/debuginfo"));
    assert_eq!(client.limit, Duration::from_secs(3));
    let client = from_pairs(&[urls, xdg, ("DEBUGINFOD_CACHE_PATH", "/c"), ("DEBUGINFOD_MAXSIZE", "99")]).unwrap();
    assert_eq!((client.cache.path(&id()).to_str(), client.max_size), (Some("/c/abcdef/debuginfo"), 99));
}

#[test]
fn without_servers_or_a_folder_there_is_no_client() {
    assert!(from_pairs(&[("HOME", "/houses/me")]).is_none());
    assert!(from_pairs(&[("HOME", "/houses/me"), ("DEBUGINFOD_URLS", " ")]).is_none());
    assert!(from_pairs(&[("DEBUGINFOD_URLS", "http://one")]).is_none());
}

#[test]
fn cached_files_need_no_server() {
    let folder = TestFolder::new();
    let client = Debuginfod::new("http://127.0.0.1:1", folder.path().into(), Duration::from_secs(5), 100).unwrap();
    std::fs::create_dir(folder.path().join("abcdef")).unwrap();
    let path = folder.file("abcdef/debuginfo", "\x7fELF");
    assert_eq!(client.fetch_debug_info(&id()), Ok(path));
}

#[cfg(not(feature = "debuginfod"))]
#[test]
fn without_the_feature_there_is_a_clear_error() {
    let folder = TestFolder::new();
    let client = Debuginfod::new("http://127.0.0.1:1", folder.path().into(), Duration::from_secs(5), 100).unwrap();
    let error = client.fetch_debug_info(&id()).unwrap_err();
    assert_eq!(error.to_string(), "no debuginfod support: built without the feature \"debuginfod\"");
}
