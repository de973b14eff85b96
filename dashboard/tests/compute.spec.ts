// What pages compute themselves. No browser is needed.

import { expect, test } from '@playwright/test';

import { change, lossInterval, type Known } from '../src/lib/estimates.ts';
import { FilterError, flowKey, parseFilter } from '../src/lib/filter.ts';
import { count, duration, measured, percent } from '../src/lib/format.ts';
import { chain, layout, parts, placesOf } from '../src/lib/places.ts';

const WEB = 'tcp 10.0.0.1:40312 > 10.0.1.9:443';
const SIX = 'udp [2001:db8::1]:5004 > [2001:db8:1::2]:53';
const PING = 'icmp 10.0.0.1 > 192.0.2.7';

test('filters select flows as those of the command line do', () => {
  const check = (filter: string, ...expected: string[]) => {
    const kept = [WEB, SIX, PING].filter((scope) => parseFilter(filter)(flowKey(scope)!));
    expect(kept, filter).toEqual(expected);
  };
  check('', WEB, SIX, PING);
  check('tcp', WEB);
  check('tcp dst port 443', WEB);
  check('tcp src port 443');
  check('port 53 or 443', WEB, SIX);
  check('portrange 5000-6000', SIX);
  check('host 10.0.0.1', WEB, PING);
  check('dst net 10.0.1.0/24', WEB);
  check('10.0.0.0/8 and not icmp', WEB);
  check('ip6', SIX);
  check('net 2001:db8::/32', SIX);
  check('src and dst net 10.0.0.0/8', WEB);
  check('!(udp || icmp)', WEB);
  // From left to right: (tcp or udp) and port 53.
  check('tcp or udp and port 53', SIX);
});

test('a filter that cannot be used says why', () => {
  for (const [filter, reason] of [['host 10.0.0', 'IP address'], ['(tcp', 'parenthesis'], ['vlan 5', 'not part of a flow'], ['tcp and', 'at the end'], ['tcp )', 'unexpected'], ['net 10.0.0.0/33', 'prefix'], [`${'('.repeat(40)}tcp`, 'levels']]) {
    expect(() => parseFilter(filter!), filter).toThrow(FilterError);
    expect(() => parseFilter(filter!), filter).toThrow(reason!);
  }
});

test('numbers are as exact as they are known', () => {
  expect(measured(12_345_678, 12_300_000, 12_391_000)).toBe('12.346 ± 0.046 ms');
  expect(measured(4_100_000, 3_900_000, 6_200_000)).toBe('4.1 (3.9 to 6.2) ms');
  expect(measured(null, null, null)).toBe('–');
  expect(measured(5_000, null, null)).toBe('5.00 µs (interval unknown)');
  expect(duration(-1_500_000)).toBe('-1.50 ms');
  expect(duration(0)).toBe('0 ns');
  expect(percent(0)).toBe('0 %');
  expect(percent(null)).toBe('–');
  expect(count(1234567)).toBe('1\u202f234\u202f567');
});

function lossOf(lost: number, packets: number): Known {
  return { value: lost / packets, low: lost / packets, high: lost / packets, isWeak: false, reason: null, algorithm: 'lda', packets, lost: [lost, lost] };
}

test('a difference counts if both intervals allow it', () => {
  expect(change(lossOf(50, 1000), lossOf(10, 1000), 'loss')).toBe(1);
  expect(change(lossOf(10, 1000), lossOf(50, 1000), 'loss')).toBe(-1);
  expect(change(lossOf(15, 1000), lossOf(10, 1000), 'loss')).toBe(0);
  expect(change({ ...lossOf(50, 1000), isWeak: true }, lossOf(10, 1000), 'loss')).toBe(0);
  // Wilson's interval of 10 in 1000, computed independently: 0.00544 to 0.01831.
  const [low, high] = lossInterval(lossOf(10, 1000))!;
  expect(low).toBeCloseTo(0.00544, 5);
  expect(high).toBeCloseTo(0.01831, 5);
});

const ends = (text: string) => text.split(' ').map((pair) => ({ upstream: pair.split('>')[0]!, downstream: pair.split('>')[1]! }));
const DEMO = ends('ams-fra>fra-ams fra-zrh>zrh-fra ams-bru>bru-ams bru-par>par-bru par-zrh>zrh-par zrh-mil>mil-zrh');

test('points of one place are drawn together, and lines do not cross places', () => {
  expect(placesOf(['fra-ams', 'fra-zrh']).get('fra-ams')).toBe('fra');
  expect(placesOf(['up', 'down']).get('up')).toBe('up');
  const { places, lines, columns } = layout(DEMO);
  expect(places.filter((place) => place.points.length).map((place) => place.name).sort()).toEqual(['ams', 'bru', 'fra', 'mil', 'par', 'zrh']);
  expect(columns).toBe(5);
  expect(lines.find((line) => line.upstream === 'fra-zrh')!.via).toHaveLength(1);
  const spots = places.map(({ x, y }) => `${x},${y}`);
  expect(new Set(spots).size).toBe(spots.length);
});

test('a network with loops can be drawn, and paths found in it', () => {
  const loop = ends('a-b>b-a b-a2>a-b2 b-c>c-b c-a>a-c');
  expect(layout(loop).places.length).toBeGreaterThan(2);
  expect(chain(DEMO, 'ams', 'mil')!.map((part) => part.upstream)).toEqual(['ams-fra', 'fra-zrh', 'zrh-mil']);
  expect(chain(DEMO, 'mil', 'ams')).toBeNull();
});

test('what was measured from end to end is no part of a path, unless nothing else leads there', () => {
  const segment = (name: string) => ({ upstream: name.split(':')[0]!, downstream: name.split(':')[1]! });
  const names = (of: ReturnType<typeof parts>) => of?.map(({ upstream, downstream }) => `${upstream}:${downstream}`) ?? null;
  const all = ['fra-out:ams-in', 'ams-out:lon-in', 'fra-out:lon-in', 'lon-out:par-in'].map(segment);
  expect(names(parts(all, 'fra', 'lon'))).toEqual(['fra-out:ams-in', 'ams-out:lon-in']);
  expect(names(parts(all, 'fra', 'ams'))).toEqual(['fra-out:ams-in']);
  expect(names(parts(all, 'lon', 'par'))).toEqual(['lon-out:par-in']);
  expect(parts(all, 'par', 'lon')).toBeNull();
});
