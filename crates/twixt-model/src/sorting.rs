//! Sorting by numbers, for many packets at a time: each is looked at a few times, where a sort by
//! comparisons would compare it twenty times.

/// Fewer are sorted by comparisons: counting digits would cost more.
const FEW: usize = 256;
/// Bits of a digit: its counters stay in the first-level cache.
const DIGIT_BITS: u32 = 11;
const DIGITS: usize = 1 << DIGIT_BITS;

/// Sorts by a number, equal ones in the order in which they were: digit by digit, from the lowest. Numbers
/// that differ in few of their bits, such as times of one capture, take few rounds.
pub fn sort_by_number<T: Copy>(items: &mut Vec<T>, number: impl Fn(&T) -> u64) {
    if items.len() < FEW {
        return items.sort_by_key(number);
    }
    let (least, most) = items.iter().fold((u64::MAX, 0), |(least, most), item| {
        let number = number(item);
        (least.min(number), most.max(number))
    });
    let bits = u64::BITS - (most - least).leading_zeros();
    if bits == 0 {
        return;
    }
    let mut other = items.clone();
    for round in 0..bits.div_ceil(DIGIT_BITS) {
        let digit =
            |item: &T| ((number(item) - least) >> (round * DIGIT_BITS)) as usize & (DIGITS - 1);
        scatter(items, &mut other, &mut [0; DIGITS], digit);
        std::mem::swap(items, &mut other);
    }
}

/// Sorts by a hash, equal ones in the order in which they were. Hashes are spread evenly, so that their
/// first bits all but tell the place; where a sender made them alike, it takes longer.
pub fn sort_by_hash<T: Copy>(items: &mut [T], hash: impl Fn(&T) -> u64) {
    if items.len() < FEW {
        return items.sort_by_key(hash);
    }
    // Two rounds: the places of one are near each other, so that few of them miss the cache.
    let bits = items.len().ilog2().min(2 * DIGIT_BITS);
    let (first, second) = (bits / 2, bits - bits / 2);
    let digit = |item: &T, bits: u32, below: u32| {
        (hash(item) >> (u64::BITS - bits - below)) as usize & ((1 << bits) - 1)
    };
    let mut other = items.to_vec();
    scatter(items, &mut other, &mut vec![0; 1 << second], |item| digit(item, second, first));
    scatter(&other, items, &mut vec![0; 1 << first], |item| digit(item, first, 0));
    items
        .chunk_by_mut(|one, next| {
            hash(one) >> (u64::BITS - bits) == hash(next) >> (u64::BITS - bits)
        })
        .filter(|alike| alike.len() > 1)
        .for_each(|alike| alike.sort_by_key(&hash));
}

/// Copies items in the order of a digit; `places` has one counter for each.
fn scatter<T: Copy>(from: &[T], to: &mut [T], places: &mut [usize], digit: impl Fn(&T) -> usize) {
    for item in from {
        places[digit(item)] += 1;
    }
    let mut next = 0;
    for place in places.iter_mut() {
        (*place, next) = (next, next + *place);
    }
    for item in from {
        let place = &mut places[digit(item)];
        to[*place] = *item;
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix;

    /// Numbers with their places: these show whether equal ones stay in order.
    fn check(numbers: impl Iterator<Item = u64>) {
        let items: Vec<(u64, usize)> =
            numbers.enumerate().map(|(at, number)| (number, at)).collect();
        let mut expected = items.clone();
        expected.sort();
        let mut sorted = [items.clone(), items];
        sort_by_number(&mut sorted[0], |item| item.0);
        sort_by_hash(&mut sorted[1], |item| item.0);
        assert_eq!(sorted, [expected.clone(), expected]);
    }

    #[test]
    fn sorted_is_what_a_sort_by_comparisons_makes_of_it() {
        for count in [0, 1, 2, 255, 256, 257, 5000, 70_000] {
            check((0..count).map(mix));
            check((0..count).map(|number| mix(number) >> 40));
            check((0..count).map(|number| mix(number) % 7));
            check((0..count).map(|number| u64::MAX - mix(number) % 3000));
            check((0..count).map(|_| u64::MAX));
            check((0..count).rev());
            check([0, u64::MAX].into_iter().cycle().take(count as usize));
        }
    }
}
