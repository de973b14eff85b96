// The filter language of the command line, as far as the key of a flow goes: addresses, ports and protocols. `and` and `or` bind
// equally, from left to right, as there.

export interface FlowKey {
  protocol: string;
  source: Bits | null;
  destination: Bits | null;
  sourcePort: number | null;
  destinationPort: number | null;
}

interface Bits {
  value: bigint;
  width: 32 | 128;
}

type Test = (key: FlowKey) => boolean;

/** A filter that cannot be used, with the reason. */
export class FilterError extends Error {}

const LENGTH_MAX = 8192;
const LEVELS_MAX = 32;
const PROTOCOLS = ['tcp', 'udp', 'sctp', 'icmp', 'icmp6', 'igmp', 'gre', 'esp', 'ah', 'ospf', 'pim', 'vrrp', 'ipip'];
const NOT_OF_FLOWS = ['vlan', 'mpls', 'dscp', 'less', 'greater', 'outer', 'proto'];

/** `tcp 10.0.0.1:40312 > 10.0.1.9:443`, and likewise with IPv6 in brackets or without ports. */
export function flowKey(scope: string): FlowKey | null {
  const match = /^(\S+(?: \d+)?) (\S+) > (\S+)$/.exec(scope);
  if (!match) return null;
  const [source, sourcePort] = end(match[2]!);
  const [destination, destinationPort] = end(match[3]!);
  return { protocol: match[1]!, source, destination, sourcePort, destinationPort };
}

function end(text: string): [Bits | null, number | null] {
  const six = /^\[([^\]]+)\](?::(\d+))?$/.exec(text) ?? (text.split(':').length > 2 ? [text, text, undefined] : null);
  const four = six ?? /^([\d.]+)(?::(\d+))?$/.exec(text);
  return [address(four?.[1] ?? ''), four?.[2] == null ? null : Number(four[2])];
}

function address(text: string): Bits | null {
  if (/^\d{1,3}(\.\d{1,3}){3}$/.test(text)) {
    const parts = text.split('.').map(Number);
    if (parts.some((part) => part > 255)) return null;
    return { value: parts.reduce((sum, part) => (sum << 8n) | BigInt(part), 0n), width: 32 };
  }
  if (!/^[0-9a-f:]+$/i.test(text) || text.split('::').length > 2 || !text.includes(':')) return null;
  const [head = '', tail] = text.split('::');
  const words = (part: string) => (part === '' ? [] : part.split(':'));
  const [before, after] = [words(head), words(tail ?? '')];
  const missing = 8 - before.length - after.length;
  if (tail == null ? missing !== 0 : missing < 1) return null;
  const all = [...before, ...Array<string>(tail == null ? 0 : missing).fill('0'), ...after];
  if (all.some((word) => !/^[0-9a-f]{1,4}$/i.test(word))) return null;
  return { value: all.reduce((sum, word) => (sum << 16n) | BigInt(`0x${word}`), 0n), width: 128 };
}

export function parseFilter(text: string): Test {
  if (text.length > LENGTH_MAX) throw new FilterError(`more than ${LENGTH_MAX} characters`);
  const words = text.match(/[()!]|&&|\|\||[^\s()!]+/g) ?? [];
  if (words.length === 0) return () => true;
  const parser = new Parser(words);
  const test = parser.filter(0);
  if (parser.next() != null) throw new FilterError(`unexpected "${parser.next()}"`);
  return test;
}

class Parser {
  private at = 0;
  private side = '';
  private kind = '';

  constructor(private readonly words: string[]) {}

  next(): string | undefined {
    return this.words[this.at];
  }

  filter(level: number): Test {
    if (level > LEVELS_MAX) throw new FilterError(`more than ${LEVELS_MAX} levels`);
    let left = this.term(level);
    for (let word = this.next(); word != null && word !== ')'; word = this.next()) {
      const isOr = word === 'or' || word === '||';
      if (isOr || word === 'and' || word === '&&') this.at += 1;
      const [before, after] = [left, this.term(level)];
      left = isOr ? (key) => before(key) || after(key) : (key) => before(key) && after(key);
    }
    return left;
  }

  private term(level: number): Test {
    const word = this.next();
    if (word === 'not' || word === '!') {
      this.at += 1;
      const inner = this.term(level + 1);
      return (key) => !inner(key);
    }
    if (word === '(') {
      this.at += 1;
      const inner = this.filter(level + 1);
      if (this.next() !== ')') throw new FilterError('a closing parenthesis is missing');
      this.at += 1;
      return inner;
    }
    return this.condition();
  }

  private condition(): Test {
    const word = this.next();
    if (word == null) throw new FilterError('expected a condition at the end');
    if (NOT_OF_FLOWS.includes(word)) throw new FilterError(`"${word}" is not part of a flow`);
    if (PROTOCOLS.includes(word)) return this.take((key) => key.protocol === word);
    if (word === 'ip' || word === 'ip6') {
      const width = word === 'ip' ? 32 : 128;
      return this.take((key) => key.source?.width === width);
    }
    this.keywords();
    return this.value();
  }

  private take(test: Test): Test {
    this.at += 1;
    return test;
  }

  /** `src host`, `port` and the like; a value alone repeats those before it. */
  private keywords(): void {
    const word = () => this.next() ?? '';
    const isSide = word() === 'src' || word() === 'dst';
    const isKind = ['host', 'net', 'port', 'portrange'].includes(word());
    if (!isSide && !isKind) return;
    [this.side, this.kind] = ['', ''];
    if (isSide) {
      this.side = this.words[this.at++]!;
      if (['or', 'and'].includes(word()) && ['src', 'dst'].includes(this.words[this.at + 1] ?? '')) {
        this.side = word() === 'or' ? '' : 'both';
        this.at += 2;
      }
    }
    if (['host', 'net', 'port', 'portrange'].includes(word())) this.kind = this.words[this.at++]!;
  }

  private value(): Test {
    const text = this.words[this.at++];
    if (text == null) throw new FilterError('expected a value at the end');
    const isPort = this.kind.startsWith('port') && /^\d+(-\d+)?$/.test(text);
    const [source, destination] = isPort ? ports(text, this.kind) : prefixes(text);
    const sides: Record<string, Test> = {
      src: source,
      dst: destination,
      both: (key) => source(key) && destination(key),
      '': (key) => source(key) || destination(key),
    };
    return sides[this.side]!;
  }
}

function ports(text: string, kind: string): [Test, Test] {
  const [low, high] = text.split('-').map(Number) as [number, number?];
  if ((high != null) !== (kind === 'portrange') || (high ?? low) > 65535) throw new FilterError(`"${text}" is not a ${kind}`);
  const inside = (port: number | null) => port != null && port >= low && port <= (high ?? low);
  return [(key) => inside(key.sourcePort), (key) => inside(key.destinationPort)];
}

function prefixes(text: string): [Test, Test] {
  const [host = '', length] = text.split('/');
  const bits = address(host);
  if (!bits) throw new FilterError(`expected an IP address, found "${text}"`);
  const size = length == null ? bits.width : Number(length);
  if (!Number.isInteger(size) || size < 0 || size > bits.width) throw new FilterError(`"${text}" is not a prefix`);
  const rest = BigInt(bits.width - size);
  const inside = (other: Bits | null) => other?.width === bits.width && other.value >> rest === bits.value >> rest;
  return [(key) => inside(key.source), (key) => inside(key.destination)];
}
