//! Times on the command line.

use std::time::Duration;

/// Parses a number of seconds above 0. Fractions are kept to the nanosecond.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let time = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.filter(|time| !time.is_zero())
        .ok_or_else(|| "write a number of seconds above 0, as 2 or 0.5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_taken_and_nonsense_is_not() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds("300"), Ok(Duration::from_secs(300)));
        for wrong in ["0", "0.0", "-1", "1e-12", "1e300", "inf", "nan", "1s", ""] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
