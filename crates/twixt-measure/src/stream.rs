//! What sealed epochs in a store are called: streams of a point. Recordings and collectors use the
//! same names, so that one query reads both.

use std::fmt;
use std::str::FromStr;

use twixt_synopsis::Purpose;
use xxhash_rust::xxh3::xxh3_64;

use crate::sealed::Sealed;

/// The stream of a sealed epoch: `lda.9d2f11c0/office/web/17979cfe362a0000`, that is algorithm and
/// settings, domain, class, run. The name determines what can be paired with what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stream {
    /// Name of the algorithm.
    pub algorithm: String,
    /// Stands for everything that both points must have in common.
    pub settings: u32,
    /// Within which point names are unique.
    pub domain: String,
    /// Name of the class of traffic; empty without classes.
    pub class: String,
    /// Number of the run of the agent.
    pub run: u64,
}

impl Stream {
    /// Of an epoch.
    #[must_use]
    pub fn of(sealed: &Sealed) -> Self {
        let length_ns = sealed.rule.length_ns().unwrap_or(0);
        let (config, cut) = (sealed.synopsis.config(), sealed.cut.name());
        let settings = format!("{config}\n{}\n{length_ns}\n{cut}", sealed.digest);
        let settings = match sealed.synopsis.algorithm() {
            // Of one point, algorithms of several purposes share a name: `exact` is one of each.
            Some(algorithm) if algorithm.purpose != Purpose::Delay => {
                format!("{settings}\n{}", algorithm.purpose.name())
            }
            _ => settings,
        };
        Self {
            algorithm: sealed.synopsis.name().to_owned(),
            settings: xxh3_64(settings.as_bytes()) as u32,
            domain: sealed.domain.clone(),
            class: sealed.class.clone(),
            run: sealed.run,
        }
    }

    /// What streams have in common that are parts of one recording: all but class and run.
    #[must_use]
    pub fn family(&self) -> String {
        format!("{}.{:08x}/{}", self.algorithm, self.settings, escaped(&self.domain))
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}/{:x}", self.family(), escaped(&self.class), self.run)
    }
}

impl FromStr for Stream {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let parts: Vec<&str> = text.split('/').collect();
        let [kind, domain, class, run] = parts.as_slice() else { return Err(()) };
        let (algorithm, settings) = kind.split_once('.').ok_or(())?;
        Ok(Self {
            algorithm: algorithm.to_owned(),
            settings: u32::from_str_radix(settings, 16).map_err(|_| ())?,
            domain: plain(domain),
            class: plain(class),
            run: u64::from_str_radix(run, 16).map_err(|_| ())?,
        })
    }
}

/// The separator is not part of a name.
fn escaped(name: &str) -> String {
    name.replace('%', "%25").replace('/', "%2F")
}

fn plain(escaped: &str) -> String {
    escaped.replace("%2F", "/").replace("%25", "%")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use twixt_model::Batch;
    use twixt_synopsis::ALGORITHMS;

    use super::*;
    use crate::fixtures::{at_ms, config, drain, packet};
    use crate::meter::Meter;

    /// A collector keeps one epoch of each stream: what has the name of another would not be kept.
    #[test]
    fn no_two_algorithms_share_a_stream() {
        let packets = [packet(1, at_ms(0)), packet(2, at_ms(150))];
        let streams: BTreeSet<Stream> = ALGORITHMS
            .iter()
            .map(|algorithm| {
                let synopsis = (algorithm.start)(&toml::Table::new()).unwrap();
                let mut meter = Meter::new(config("point"), synopsis).unwrap();
                meter.observe(Batch::of(&packets));
                Stream::of(&drain(&mut meter)[0])
            })
            .collect();
        assert_eq!(streams.len(), ALGORITHMS.len(), "{streams:?}");
    }

    #[test]
    fn names_of_streams_read_back() {
        for (domain, class) in [("", ""), ("office", "web"), ("a/b", "50%"), ("%2F", "/%25/")] {
            let stream = Stream {
                algorithm: "lda".to_owned(),
                settings: 0x12,
                domain: domain.to_owned(),
                class: class.to_owned(),
                run: u64::MAX,
            };
            assert_eq!(stream.to_string().parse(), Ok(stream));
        }
        for text in ["", "lda", "lda.1/a/b", "lda/a/b/c", "lda.x/a/b/1", "lda.1/a/b/1/2"] {
            assert!(text.parse::<Stream>().is_err(), "{text}");
        }
    }
}
