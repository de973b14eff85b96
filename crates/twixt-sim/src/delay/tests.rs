use statrs::function::gamma::gamma;

use super::*;

const DRAWS: usize = 400_000;

/// Delays of packets that come one per microsecond, each of its own flow by default.
fn delays_us(model: &str, flow_of: impl Fn(usize) -> u32, flows: u32) -> Vec<f64> {
    let model: DelayModel = model.parse().unwrap();
    let mut process = DelayProcess::new(&model, 5, FORWARD, flows);
    let entry =
        |index: usize| Entry { time_ns: index as i64 * 1000, flow: flow_of(index), bytes: 500 };
    (0..DRAWS).map(|index| process.cross(entry(index)).unwrap() as f64 / 1000.0).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn variance(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|value| (value - centre).powi(2)).sum::<f64>() / values.len() as f64
}

#[track_caller]
fn near(found: f64, expected: f64, standard_error: f64) {
    let distance = (found - expected).abs();
    assert!(distance <= 5.0 * standard_error, "{found}, not {expected} ± {standard_error}");
}

/// The share of delays of at most `at` is `expected`, by the binomial standard error.
#[track_caller]
fn check_share(delays: &[f64], at: f64, expected: f64) {
    let share = delays.iter().filter(|&&delay| delay <= at).count() as f64 / delays.len() as f64;
    near(share, expected, (expected * (1.0 - expected) / delays.len() as f64).sqrt());
}

#[test]
fn weibull_delays_have_the_moments_of_theory() {
    let (scale, shape, n) = (133.0, 0.6, DRAWS as f64);
    let moment = |k: i32| scale_power(scale, k) * gamma(1.0 + f64::from(k) / shape);
    let (m1, m2, m3, m4) = (moment(1), moment(2), moment(3), moment(4));
    let theory = m2 - m1 * m1;
    let fourth = m4 - 4.0 * m1 * m3 + 6.0 * m1 * m1 * m2 - 3.0 * m1.powi(4);
    assert!((m1 - 200.1).abs() < 0.05 && (theory.sqrt() - 352.0).abs() < 1.0);

    let delays = delays_us("weibull:shape=0.6,scale=133us", |_| 0, 1);
    near(mean(&delays), m1, (theory / n).sqrt());
    near(variance(&delays), theory, ((fourth - theory * theory) / n).sqrt());
    check_share(&delays, 200.0, 0.7212);
    check_share(&delays, scale, 1.0 - (-1.0_f64).exp());
}

fn scale_power(scale: f64, k: i32) -> f64 {
    scale.powi(k)
}

#[test]
fn pareto_delays_have_the_moments_of_theory() {
    let delays = delays_us("pareto:shape=3,scale=133300ns", |_| 0, 1);
    // Mean 3/2 scale, variance 3/4 scale^2; the fourth moment is infinite.
    let theory = 0.75 * 133.3 * 133.3;
    near(mean(&delays), 199.95, (theory / DRAWS as f64).sqrt());
    check_share(&delays, 200.0, 0.7039);
    check_share(&delays, 400.0, 1.0 - (133.3_f64 / 400.0).powi(3));
    assert!(delays.iter().all(|&delay| delay >= 133.3));
}

#[test]
fn constant_delays_are_constant() {
    assert!(delays_us("constant:7us", |_| 0, 1).iter().all(|&delay| delay == 7.0));
}

#[test]
fn flows_have_means_of_their_own() {
    let flows = 4000;
    let delays =
        delays_us("per-flow:median=1ms,spread=0.35,jitter=0", |index| index as u32 % flows, flows);
    // Without jitter a flow's packets are all alike.
    let means = &delays[..flows as usize];
    assert_eq!(means, &delays[flows as usize..2 * flows as usize]);
    let logarithms: Vec<f64> = means.iter().map(|mean| mean.ln()).collect();
    let n = f64::from(flows);
    near(mean(&logarithms), 1000.0_f64.ln(), 0.35 / n.sqrt());
    near(variance(&logarithms).sqrt(), 0.35, 0.35 / (2.0 * n).sqrt());
}

#[test]
fn packets_vary_around_the_mean_of_their_flow() {
    let delays = delays_us("per-flow:median=1ms,spread=0,jitter=0.5", |_| 0, 1);
    near(mean(&delays), 1000.0, 500.0 / (DRAWS as f64).sqrt());
    // Kurtosis of the log-normal with w = exp(sigma^2) = 1.25: w^4 + 2 w^3 + 3 w^2 - 3 = 8.04.
    let error = 500.0 / 2.0 * ((8.04 - 1.0) / DRAWS as f64).sqrt();
    near(variance(&delays).sqrt(), 500.0, error);
}

#[test]
fn bimodal_flows_have_one_of_two_means() {
    let flows = DRAWS as u32;
    let model = "bimodal:fraction=0.6,first=200us,second=1500us,spread=0,jitter=0";
    let delays = delays_us(model, |index| index as u32, flows);
    assert!(delays.iter().all(|&delay| delay == 200.0 || delay == 1500.0));
    check_share(&delays, 200.0, 0.6);
}

/// Sends packets of `bytes` at the times through the model.
fn through(
    model: &str,
    times_ns: impl Iterator<Item = i64>,
    bytes: u32,
) -> Vec<(i64, Option<i64>)> {
    let mut process = DelayProcess::new(&model.parse().unwrap(), 5, FORWARD, 1);
    times_ns.map(|time_ns| (time_ns, process.cross(Entry { time_ns, flow: 0, bytes }))).collect()
}

#[test]
fn a_queue_is_worked_off_in_order() {
    // 1250 bytes at 1 Gbit/s take 10 us.
    let crossed =
        through("droptail:drain=1gbit,queue=3", [0, 0, 0, 0, 10_000, 50_000].into_iter(), 1250);
    let delays: Vec<Option<i64>> = crossed.iter().map(|packet| packet.1).collect();
    let expected = [Some(10_000), Some(20_000), Some(30_000), None, Some(30_000), Some(10_000)];
    assert_eq!(delays, expected);
}

#[test]
fn an_overloaded_queue_conserves_work() {
    // Twice as many bits come as can leave: one packet of 10 us every 5 us.
    let crossed = through("droptail:drain=1gbit,queue=100", (0..20_000).map(|i| i * 5_000), 1250);
    let exits: Vec<i64> =
        crossed.iter().filter_map(|(time, delay)| Some(time + (*delay)?)).collect();
    // Never idle, one packet at a time.
    assert!(exits.windows(2).all(|pair| pair[1] - pair[0] == 10_000));
    let longest = crossed.iter().filter_map(|packet| packet.1).max().unwrap();
    assert!(longest <= 100 * 10_000 && longest > 99 * 10_000, "{longest}");
    // In steady state every other packet is lost; 100 wait when the trace ends.
    let lost = crossed.iter().filter(|packet| packet.1.is_none()).count();
    assert_eq!(lost + exits.len(), 20_000);
    assert!(lost.abs_diff(10_000 - 100) <= 1, "{lost}");
}

#[test]
fn fractions_of_nanoseconds_add_up() {
    // 40 bytes at 100 Gbit/s take 3.2 ns: a thousand of them 3200 ns, not 3000.
    let crossed = through("droptail:drain=100gbit,queue=1000", std::iter::repeat_n(0, 1000), 40);
    assert_eq!(crossed[999].1, Some(3200));
}

const RED: &str = "red:drain=1gbit,queue=1000,min=50,max=150,weight=0.002,max-p=0.1";

#[test]
fn early_detection_spares_short_queues_and_holds_long_ones() {
    // Half load in clumps of 20 packets: never 50 in the queue.
    let clumps = (0..20_000).map(|i| i / 20 * 400_000);
    assert!(through(RED, clumps, 1250).iter().all(|packet| packet.1.is_some()));

    // 5 % too many packets: needs a loss of 1 in 21, which max-p = 0.1 reaches between the
    // thresholds, so that the queue settles there and the limit is never hit.
    let overload = through(RED, (0..400_000).map(|i| i * 200_000 / 21), 1250);
    let settled = &overload[200_000..];
    let lost = settled.iter().filter(|packet| packet.1.is_none()).count() as f64;
    assert!((lost / 200_000.0 - 1.0 / 21.0).abs() < 0.003, "{lost}");
    let waits: Vec<f64> =
        settled.iter().filter_map(|packet| packet.1).map(|delay| delay as f64 / 10_000.0).collect();
    assert!((50.0..150.0).contains(&mean(&waits)), "{}", mean(&waits));
    assert!(waits.iter().all(|&wait| wait < 400.0));
}

#[test]
fn the_average_decays_while_the_queue_is_idle() {
    let DelayModel::Red(model) = RED.parse().unwrap() else { panic!("not red") };
    let mut red = EarlyDetection::new(model);
    let mut stream = Stream::new(5, Purpose::ForwardDelay);
    for index in 0..100_000 {
        red.cross(Entry { time_ns: index * 9_000, flow: 0, bytes: 1250 }, &mut stream);
    }
    let busy = red.average;
    // Ten milliseconds at 4 us a typical packet: 0.998^2500 = 0.0067, less the time it takes to
    // empty the queue first.
    red.cross(Entry { time_ns: 100_000 * 9_000 + 10_000_000, flow: 0, bytes: 1250 }, &mut stream);
    assert!(busy > 50.0 && red.average < busy * 0.02, "{busy} {}", red.average);
}
