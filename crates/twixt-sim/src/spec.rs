//! The text form that all models share: `name`, `name:value` or `name:key=value,key=value`.
//!
//! Knows the shape only. Which names and keys there are, the models say, and every error lists
//! them.

use std::fmt;
use std::str::FromStr;

/// Why a text names no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// No model has this name. Use one of those listed.
    #[error("{subject}: unknown model {name:?}; known are: {known}")]
    UnknownName {
        /// What the model is for.
        subject: &'static str,
        /// What was written.
        name: String,
        /// How the models are written.
        known: String,
    },
    /// The model has no such key. Use one of those listed.
    #[error("{subject} {name:?}: unknown key {key:?}; known are: {known}")]
    UnknownKey {
        /// What the model is for.
        subject: &'static str,
        /// Which model.
        name: String,
        /// What was written.
        key: String,
        /// The keys of the model.
        known: String,
    },
    /// The key is there twice. Write it once.
    #[error("{subject} {name:?}: duplicate key {key:?}")]
    Repeated {
        /// What the model is for.
        subject: &'static str,
        /// Which model.
        name: String,
        /// The key.
        key: String,
    },
    /// Something the model needs is missing. Add it.
    #[error("{subject} {name:?}: {key} is missing; write {form}")]
    Missing {
        /// What the model is for.
        subject: &'static str,
        /// Which model.
        name: String,
        /// The missing key, or what the value should be.
        key: &'static str,
        /// How the model is written.
        form: String,
    },
    /// A value cannot be read. The reason says why.
    #[error("{subject} {name:?}: {key}={value}: {reason}")]
    Value {
        /// What the model is for.
        subject: &'static str,
        /// Which model.
        name: String,
        /// Of which key.
        key: &'static str,
        /// What was written.
        value: String,
        /// Why it cannot be read.
        reason: String,
    },
    /// A value can be read but makes no sense.
    #[error(transparent)]
    Range(#[from] RangeError),
}

/// A value that a model cannot work with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {value}, but must be {range}")]
pub struct RangeError {
    /// Of what.
    pub field: &'static str,
    /// The value.
    pub value: String,
    /// What it must be.
    pub range: &'static str,
}

/// Refuses `value` unless it is `good`.
pub(crate) fn require(
    good: bool,
    field: &'static str,
    value: impl fmt::Display,
    range: &'static str,
) -> Result<(), RangeError> {
    if good { Ok(()) } else { Err(RangeError { field, value: value.to_string(), range }) }
}

/// Refuses numbers that are not positive, or too large to calculate with.
pub(crate) fn require_positive(field: &'static str, value: f64) -> Result<(), RangeError> {
    require(value > 0.0 && value < 1e18, field, value, "positive")
}

/// Refuses what is no probability.
pub(crate) fn require_share(field: &'static str, value: f64) -> Result<(), RangeError> {
    require((0.0..=1.0).contains(&value), field, value, "between 0 and 1")
}

/// How a model is written: its name, and the example that shows its keys.
pub(crate) struct Form {
    pub(crate) name: &'static str,
    /// As after the colon; empty for models without parameters.
    pub(crate) example: &'static str,
}

impl Form {
    pub(crate) const fn new(name: &'static str, example: &'static str) -> Self {
        Self { name, example }
    }

    fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.example.split(',').filter_map(|pair| Some(pair.split_once('=')?.0))
    }
}

impl fmt::Display for Form {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.is_empty() || self.example.is_empty() {
            true => write!(formatter, "{}{}", self.name, self.example),
            false => write!(formatter, "{}:{}", self.name, self.example),
        }
    }
}

/// A model's text, taken apart and found to have a known name and known keys.
pub(crate) struct Spec<'a> {
    subject: &'static str,
    form: &'static Form,
    value: &'a str,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Spec<'a> {
    /// Of one of several models.
    pub(crate) fn parse(
        subject: &'static str,
        forms: &'static [Form],
        text: &'a str,
    ) -> Result<Self, SpecError> {
        let (name, value) = text.split_once(':').unwrap_or((text, ""));
        let form = forms.iter().find(|form| form.name == name.trim()).ok_or_else(|| {
            let known = forms.iter().map(Form::to_string).collect::<Vec<_>>().join(" | ");
            SpecError::UnknownName { subject, name: name.to_owned(), known }
        })?;
        Self::with_form(subject, form, value)
    }

    /// Of the only model there is, which has no name.
    pub(crate) fn with_form(
        subject: &'static str,
        form: &'static Form,
        value: &'a str,
    ) -> Result<Self, SpecError> {
        let mut spec = Self { subject, form, value, pairs: Vec::new() };
        // A model with a single nameless value has no keys that could be wrong.
        if form.example.is_empty() || form.keys().next().is_some() {
            for part in value.split(',').filter(|part| !part.trim().is_empty()) {
                let (key, value) = part.split_once('=').unwrap_or((part, ""));
                spec.add(key.trim(), value.trim())?;
            }
        }
        Ok(spec)
    }

    fn add(&mut self, key: &'a str, value: &'a str) -> Result<(), SpecError> {
        let (subject, name) = (self.subject, self.form.name.to_owned());
        if !self.form.keys().any(|known| known == key) {
            let known = self.form.keys().collect::<Vec<_>>().join(", ");
            let known = if known.is_empty() { "none".to_owned() } else { known };
            return Err(SpecError::UnknownKey { subject, name, key: key.to_owned(), known });
        }
        if self.pairs.iter().any(|pair| pair.0 == key) {
            return Err(SpecError::Repeated { subject, name, key: key.to_owned() });
        }
        self.pairs.push((key, value));
        Ok(())
    }

    pub(crate) fn name(&self) -> &'static str {
        self.form.name
    }

    /// The value of a model that has only one: `constant:1ms`.
    pub(crate) fn only<T: FromStr<Err: fmt::Display>>(
        &self,
        meaning: &'static str,
    ) -> Result<T, SpecError> {
        match self.value.trim() {
            "" => Err(self.missing(meaning)),
            value => self.read(meaning, value),
        }
    }

    /// The value of a key that must be there.
    pub(crate) fn key<T: FromStr<Err: fmt::Display>>(
        &self,
        key: &'static str,
    ) -> Result<T, SpecError> {
        self.optional(key)?.ok_or_else(|| self.missing(key))
    }

    /// The value of a key that may be there.
    pub(crate) fn optional<T: FromStr<Err: fmt::Display>>(
        &self,
        key: &'static str,
    ) -> Result<Option<T>, SpecError> {
        let found = self.pairs.iter().find(|pair| pair.0 == key);
        found.map(|pair| self.read(key, pair.1)).transpose()
    }

    fn read<T: FromStr<Err: fmt::Display>>(
        &self,
        key: &'static str,
        value: &str,
    ) -> Result<T, SpecError> {
        value.parse().map_err(|reason: T::Err| SpecError::Value {
            subject: self.subject,
            name: self.form.name.to_owned(),
            key,
            value: value.to_owned(),
            reason: reason.to_string(),
        })
    }

    fn missing(&self, key: &'static str) -> SpecError {
        let (subject, name) = (self.subject, self.form.name.to_owned());
        SpecError::Missing { subject, name, key, form: self.form.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Burst, Clock, DelayModel, FlowSize, Loss, PacketSize, Reorder, Reverse};
    use proptest::prelude::*;

    #[track_caller]
    fn check<M: FromStr<Err = SpecError> + fmt::Display + PartialEq + fmt::Debug>(text: &str) {
        let model: M = text.parse().unwrap();
        assert_eq!(model.to_string(), text);
        assert_eq!(model.to_string().parse::<M>().unwrap(), model);
    }

    #[test]
    fn every_model_reads_back_what_it_shows() {
        check::<FlowSize>("pareto:shape=1.05,min=2.53,max=200000");
        check::<FlowSize>("fixed:packets=10");
        check::<FlowSize>("zipf:exponent=1.1,max=10000");
        check::<DelayModel>("constant:1ms");
        check::<DelayModel>("weibull:shape=0.6,scale=100us");
        check::<DelayModel>("pareto:shape=3,scale=133us");
        check::<DelayModel>("per-flow:median=1ms,spread=0.35,jitter=0.5");
        check::<DelayModel>(
            "bimodal:fraction=0.6,first=200us,second=1500us,spread=0.35,jitter=0.5",
        );
        check::<DelayModel>("droptail:drain=1gbit,queue=10000");
        check::<DelayModel>(
            "red:drain=1gbit,queue=10000,min=4000,max=9000,weight=0.002,max-p=0.02",
        );
        check::<PacketSize>("imix");
        check::<PacketSize>("fixed:bytes=512");
        check::<Loss>("none");
        check::<Loss>("uniform:0.001");
        check::<Loss>("burst:rate=0.01,length=100");
        check::<Reorder>("none");
        check::<Reorder>("uniform:rate=0.01,extent=1ms");
        check::<Reorder>("prefixes:share=0.03,rate=0.05");
        check::<Clock>("offset=-3ms,skew=-20.5ppm");
        check::<Burst>("length=8,gap=20us");
        check::<Reverse>("none");
        check::<Reverse>("constant:1ms");
    }

    #[test]
    fn a_clock_may_say_less() {
        assert_eq!("offset=0,skew=0ppm".parse::<Clock>().unwrap(), Clock::default());
        assert_eq!("skew=0".parse::<Clock>().unwrap(), Clock::default());
    }

    #[track_caller]
    fn refused<M: FromStr<Err = SpecError> + fmt::Debug>(text: &str, says: &str) {
        let message = text.parse::<M>().expect_err("should be refused").to_string();
        assert!(message.contains(says), "{message}");
    }

    #[test]
    fn errors_say_what_is_known() {
        refused::<DelayModel>("normal:mean=1ms", "constant:1ms | weibull:shape=0.6,scale=100us");
        refused::<DelayModel>("weibull:shape=1,mean=1ms", "known are: shape, scale");
        refused::<DelayModel>("weibull:shape=1", "scale is missing; write weibull:shape=");
        refused::<DelayModel>("weibull:shape=1,shape=2,scale=1ms", "duplicate key");
        refused::<DelayModel>("weibull:shape=one,scale=1ms", "shape=one: invalid float");
        refused::<DelayModel>("weibull:shape=1,scale=1", "known are: ns, us");
        refused::<DelayModel>("constant", "delay is missing; write constant:1ms");
        refused::<DelayModel>("constant:-1ms", "must be");
        refused::<DelayModel>("red:drain=1gbit,queue=10,min=4,max=4,weight=1,max-p=1", "above min");
        refused::<DelayModel>("droptail:drain=1gbit,queue=0", "must be");
        refused::<FlowSize>("pareto:shape=nan,min=1,max=2", "must be positive");
        refused::<FlowSize>("fixed:packets=0", "must be");
        refused::<PacketSize>("imix:bytes=1", "known are: none");
        refused::<PacketSize>("fixed:bytes=70000", "must be");
        refused::<Loss>("uniform:1.5", "between 0 and 1");
        refused::<Loss>("burst:rate=0.9,length=2", "length");
        refused::<Clock>("offset=1ms,drift=3ppm", "known are: offset, skew");
        refused::<Clock>("skew=-1000000ppm", "must be");
        refused::<Burst>("length=0.5,gap=1us", "must be");
    }

    proptest! {
        #[test]
        fn no_text_panics(
            name in "constant|weibull|pareto|per-flow|bimodal|red|fixed|zipf|uniform|burst|.{0,5}",
            rest in "[a-z=,0-9.:-]{0,30}|.{0,10}",
        ) {
            let text = format!("{name}:{rest}");
            let _ = text.parse::<DelayModel>();
            let _ = text.parse::<FlowSize>();
            let _ = text.parse::<Loss>();
            let _ = text.parse::<Reorder>();
            let _ = rest.parse::<Clock>();
            let _ = rest.parse::<Burst>();
        }
    }
}
