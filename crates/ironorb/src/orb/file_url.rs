//! `file:` URLs: references in files, which servers without a naming service write.

use std::path::Path;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use super::small_file;

/// The path in a URL of this scheme: `file:relative`, `file:/absolute`, `file:///absolute` or
/// `file://localhost/absolute`. Nothing in it is escaped.
pub(super) fn path(url: &str) -> Option<&str> {
    let url = url.trim_ascii();
    let (scheme, path) = url.split_at_checked("file:".len())?;
    if !scheme.eq_ignore_ascii_case("file:") {
        return None;
    }
    let without_host = path.strip_prefix("//localhost/").or_else(|| path.strip_prefix("///"));
    // The path begins with the last slash of the prefix.
    Some(without_host.map_or(path, |rest| &path[path.len() - rest.len() - 1..]))
}

/// The text of a file that names an object. The file may not name another file.
pub(super) fn read(file: &str) -> Result<String, SystemException> {
    let bad = |minor, why: &str| {
        about(
            file,
            SystemException::new(SystemExceptionKind::BadParam, minor, CompletionStatus::No).with_detail(why),
        )
    };
    let text = small_file::read(Path::new(file))
        .map_err(|e| bad(MinorCode::BAD_PARAM_URL_SPECIFIC, &e.to_string()))?
        .ok_or_else(|| {
            bad(MinorCode::BAD_PARAM_URL_SPECIFIC, "it is longer than 1 MiB, which no reference is")
        })?;
    if text.trim_ascii().is_empty() {
        return Err(bad(
            MinorCode::BAD_PARAM_URL_SPECIFIC,
            "it is empty; has the server written its reference yet?",
        ));
    }
    if path(&text).is_some() {
        return Err(bad(MinorCode::BAD_PARAM_URL_OTHER, "a file that names another file"));
    }
    Ok(text)
}

/// Adds the file's name to an exception's detail.
pub(super) fn about(file: &str, e: SystemException) -> SystemException {
    let detail = match e.detail() {
        Some(detail) => format!("{file}: {detail}"),
        None => file.to_owned(),
    };
    e.with_detail(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_all_forms() {
        for (url, expected) in [
            ("file:a.ior", Some("a.ior")),
            ("FILE:/tmp/a.ior", Some("/tmp/a.ior")),
            ("file:///tmp/a.ior", Some("/tmp/a.ior")),
            (" file://localhost/tmp/a.ior\n", Some("/tmp/a.ior")),
            ("corbaloc::host/key", None),
            ("fil", None),
            ("\u{e4}\u{e4}\u{e4}", None),
        ] {
            assert_eq!(path(url), expected, "{url}");
        }
    }
}
