//! Delay models as text.

use std::fmt;
use std::str::FromStr;

use super::{DelayModel, Red};
use crate::spec::{Form, Spec, SpecError};

const FORMS: &[Form] = &[
    Form::new("constant", "1ms"),
    Form::new("weibull", "shape=0.6,scale=100us"),
    Form::new("pareto", "shape=3,scale=133us"),
    Form::new("per-flow", "median=1ms,spread=0.35,jitter=0.5"),
    Form::new("bimodal", "fraction=0.6,first=200us,second=1500us,spread=0.35,jitter=0.5"),
    Form::new("droptail", "drain=1gbit,queue=10000"),
    Form::new("red", "drain=1gbit,queue=10000,min=4000,max=9000,weight=0.002,max-p=0.02"),
];

impl FromStr for DelayModel {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let spec = Spec::parse("delay", FORMS, text)?;
        let model = read(&spec)?;
        model.validate()?;
        Ok(model)
    }
}

fn read(spec: &Spec<'_>) -> Result<DelayModel, SpecError> {
    Ok(match spec.name() {
        "constant" => DelayModel::Constant { delay: spec.only("delay")? },
        "weibull" => DelayModel::Weibull { shape: spec.key("shape")?, scale: spec.key("scale")? },
        "pareto" => DelayModel::Pareto { shape: spec.key("shape")?, scale: spec.key("scale")? },
        "per-flow" => DelayModel::PerFlow {
            median: spec.key("median")?,
            spread: spec.key("spread")?,
            jitter: spec.key("jitter")?,
        },
        "bimodal" => DelayModel::Bimodal {
            fraction: spec.key("fraction")?,
            first: spec.key("first")?,
            second: spec.key("second")?,
            spread: spec.key("spread")?,
            jitter: spec.key("jitter")?,
        },
        "droptail" => DelayModel::DropTail { drain: spec.key("drain")?, queue: spec.key("queue")? },
        _ => DelayModel::Red(Red {
            drain: spec.key("drain")?,
            queue: spec.key("queue")?,
            min: spec.key("min")?,
            max: spec.key("max")?,
            weight: spec.key("weight")?,
            max_p: spec.key("max-p")?,
        }),
    })
}

impl fmt::Display for DelayModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant { delay } => write!(formatter, "constant:{delay}"),
            Self::Weibull { shape, scale } => {
                write!(formatter, "weibull:shape={shape},scale={scale}")
            }
            Self::Pareto { shape, scale } => {
                write!(formatter, "pareto:shape={shape},scale={scale}")
            }
            Self::PerFlow { median, spread, jitter } => {
                write!(formatter, "per-flow:median={median},spread={spread},jitter={jitter}")
            }
            Self::Bimodal { fraction, first, second, spread, jitter } => write!(
                formatter,
                "bimodal:fraction={fraction},first={first},second={second},spread={spread},jitter={jitter}"
            ),
            Self::DropTail { drain, queue } => {
                write!(formatter, "droptail:drain={drain},queue={queue}")
            }
            Self::Red(Red { drain, queue, min, max, weight, max_p }) => write!(
                formatter,
                "red:drain={drain},queue={queue},min={min},max={max},weight={weight},max-p={max_p}"
            ),
        }
    }
}
