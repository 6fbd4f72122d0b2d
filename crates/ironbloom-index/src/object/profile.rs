//! The profile of AWS: what `~/.aws/credentials` and `~/.aws/config` say under `AWS_PROFILE`, or under `default`.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

/// What a profile sets. Never printed: there is no `Debug`.
#[derive(Default)]
pub(super) struct Profile {
    pub(super) access_key_id: Option<String>,
    pub(super) secret_access_key: Option<String>,
    pub(super) session_token: Option<String>,
    pub(super) region: Option<String>,
    pub(super) endpoint_url: Option<String>,
}

/// Ways to get credentials that a profile may ask for and that are not supported.
const OTHERS: [&str; 4] = ["sso_session", "sso_start_url", "role_arn", "credential_process"];

impl Profile {
    /// The profile of this user. Nothing is set if there is none, unless it was asked for by name.
    pub(super) fn load() -> io::Result<Self> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let asked = set("AWS_PROFILE").or_else(|| set("AWS_DEFAULT_PROFILE"));
        let has_keys = set("AWS_ACCESS_KEY_ID").is_some();
        let home = set("HOME").or_else(|| set("USERPROFILE"));
        let text = |variable: &str, file: &str| {
            let path = set(variable).map(PathBuf::from);
            let path = path.or_else(|| Some(PathBuf::from(home.as_ref()?).join(".aws").join(file)));
            path.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default()
        };
        let credentials = text("AWS_SHARED_CREDENTIALS_FILE", "credentials");
        let config = text("AWS_CONFIG_FILE", "config");
        Self::of(&credentials, &config, asked.as_deref(), has_keys)
    }

    fn of(
        credentials: &str,
        config: &str,
        asked: Option<&str>,
        has_keys: bool,
    ) -> io::Result<Self> {
        let name = asked.unwrap_or("default");
        let in_config = if name == "default" { name.to_owned() } else { format!("profile {name}") };
        let found = [section(credentials, name), section(config, &in_config)];
        if found.iter().all(Option::is_none) && asked.is_some() {
            let what = format!(
                "there is no profile {name} (AWS_PROFILE) in ~/.aws/credentials or ~/.aws/config"
            );
            return Err(io::Error::new(ErrorKind::NotFound, what));
        }
        let get = |key: &str| found.iter().flatten().find_map(|section| section.get(key)).cloned();
        let profile = Self {
            access_key_id: get("aws_access_key_id"),
            secret_access_key: get("aws_secret_access_key"),
            session_token: get("aws_session_token"),
            region: get("region"),
            endpoint_url: get("endpoint_url"),
        };
        let other = OTHERS.into_iter().find(|key| get(key).is_some());
        match other.filter(|_| profile.access_key_id.is_none() && !has_keys) {
            Some(key) => {
                let what = format!(
                    "profile {name} gets its credentials by {key}, which is not supported; \
                     `aws configure export-credentials --format env` puts them into the environment"
                );
                Err(io::Error::new(ErrorKind::Unsupported, what))
            }
            None => Ok(profile),
        }
    }
}

/// The settings of a section `[name]`, with names in lower case.
fn section(text: &str, name: &str) -> Option<HashMap<String, String>> {
    let mut found = None;
    let mut is_inside = false;
    for line in text.lines() {
        let is_nested = line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(title) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            let title = title.0.split_whitespace().collect::<Vec<_>>().join(" ");
            is_inside = title.replace('"', "") == name;
            if is_inside {
                found.get_or_insert_with(HashMap::new);
            }
        } else if let Some((key, value)) = line.split_once('=').filter(|_| is_inside && !is_nested)
        {
            let settings = found.get_or_insert_with(HashMap::new);
            settings.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "# mine\n[default]\naws_access_key_id = A\naws_secret_access_key=B=\n\n[work]\n\
                               AWS_ACCESS_KEY_ID = C\naws_secret_access_key = D\naws_session_token = E\n";
    const CONFIG: &str = "[default]\nregion = eu-north-1\n[profile work]\nregion=eu-west-1\n\
                          s3 =\n  endpoint_url = http://wrong\nendpoint_url = http://right\n\
                          [profile sso]\nsso_session = x\n";

    #[test]
    fn a_profile_is_the_one_of_its_name_in_both_files() {
        let default = Profile::of(CREDENTIALS, CONFIG, None, false).unwrap();
        assert_eq!(default.access_key_id.as_deref(), Some("A"));
        assert_eq!(default.secret_access_key.as_deref(), Some("B="));
        assert_eq!(default.region.as_deref(), Some("eu-north-1"));
        assert_eq!((default.session_token, default.endpoint_url), (None, None));
        let work = Profile::of(CREDENTIALS, CONFIG, Some("work"), false).unwrap();
        assert_eq!(work.access_key_id.as_deref(), Some("C"));
        assert_eq!(work.session_token.as_deref(), Some("E"));
        assert_eq!(work.endpoint_url.as_deref(), Some("http://right"));
    }

    #[test]
    fn what_is_missing_or_not_supported_is_named() {
        let error =
            |name| Profile::of(CREDENTIALS, CONFIG, Some(name), false).err().unwrap().to_string();
        assert!(error("nobody").contains("no profile nobody"));
        assert!(error("sso").contains("sso_session"));
        assert!(Profile::of(CREDENTIALS, CONFIG, Some("sso"), true).is_ok());
        let none = Profile::of("", "", None, false).unwrap();
        assert!(none.access_key_id.is_none() && none.region.is_none());
    }
}
