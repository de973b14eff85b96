//! Stories of fixed seeds: what is acknowledged is stored, and everything heals.

use twixt_faults::seeds::{Stories, run_all, run_one};

/// As many as fit into a gating run.
const STORIES: u64 = 1_000;

#[test]
fn no_story_of_faults_loses_an_epoch() {
    let stories = Stories { first: 0, count: STORIES, steps_max: u64::MAX, progress_every: 0 };
    let totals = run_all(stories);
    if let Some((seed, failure)) = totals.failure {
        let story = failure.story.join("\n");
        panic!("{story}\nseed {seed}: {}\ncargo xtask faults --seed {seed}", failure.problem);
    }
    assert_eq!(totals.stories, STORIES);
    assert!(totals.stored > 10 * STORIES && totals.estimated > STORIES, "{totals:?}");
}

#[test]
fn one_seed_is_one_story() {
    for seed in [3, 14, 159] {
        let traces = [(); 2].map(|()| run_one(seed, u64::MAX).expect("it heals").trace);
        assert_eq!(traces[0], traces[1], "seed {seed}");
    }
    assert_ne!(run_one(1, u64::MAX).unwrap().trace, run_one(2, u64::MAX).unwrap().trace);
}
