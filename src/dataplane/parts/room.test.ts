import { expect, onTestFinished, test, vi } from 'vitest';
import { type Choices, createChoices } from '../../../test/support/random.ts';
import { createRoom, type RoomShare } from './room.ts';

const SIZE = 4_608;
const LEAST = 8;
const ignore = () => {};

interface Part {
  readonly share: RoomShare;
  held: number;
}

function join(room: ReturnType<typeof createRoom>, ...tenants: string[]): Part[] {
  return tenants.map(tenant => ({ share: room.join(tenant), held: 0 }));
}

/** Ends some claims of each part, and then creates as many claims as are allowed. */
function play(parts: readonly Part[], rounds = 500): void {
  for (let round = 0; round < rounds; round++) {
    for (const part of parts) {
      const ended = Math.ceil(part.held / 10);
      part.share.give(ended);
      const taken = Math.max(0, part.share.free());
      part.share.take(taken);
      part.held += taken - ended;
    }
  }
}

const isNear = (value: number, wanted: number) => Math.abs(value - wanted) <= SIZE / 200;

test('the only busy part always gets the same limit', () => {
  const { share } = join(createRoom(SIZE, LEAST), 'a')[0] as Part;
  for (let held = 0; held <= 2_048; held += 256) {
    expect(share.limit(held, ignore)).toBe(2_048);
    share.take(256);
  }
});

test('a workspace uses at most as much as it leaves, regardless of the number of parts', () => {
  const room = createRoom(SIZE, LEAST);
  const parts = join(room, ...'aaaaaaaaaa');
  play(parts);
  const held = parts.map(part => part.held);
  expect(Math.max(...held) - Math.min(...held)).toBeLessThan(SIZE / 200);
  expect(room.free()).toBeGreaterThanOrEqual(SIZE / 2);
  // There is room left for the next part of the workspace.
  expect(room.join('a').free()).toBeGreaterThan(0);
});

test('workspaces with one busy part each have equal shares in the end, in any order', () => {
  const room = createRoom(SIZE, LEAST);
  const parts = join(room, 'a');
  play(parts);
  expect(parts[0]?.held).toBe(2_048);
  parts.push(...join(room, 'b', 'c'));
  play(parts);
  for (const { held } of parts) expect(isNear(held, room.free() * (4 / 5))).toBe(true);
  expect(room.join('d').free()).toBeGreaterThan(SIZE / 12);
});

test('claims that end above the share are not replaced, except for the last claim', () => {
  const room = createRoom(SIZE, LEAST);
  const [first, other] = join(room, 'a', 'b') as [Part, Part];
  first.share.take(2_048);
  other.share.take(2_000);
  expect(first.share.free()).toBeLessThan(0);
  expect(first.share.limit(2_048, ignore)).toBe(2_048 + first.share.free());
  const second = room.join('a');
  expect(second.limit(0, ignore)).toBeLessThanOrEqual(0);
  second.take(5);
  expect(second.limit(5, ignore)).toBe(1);
});

test('a workspace that holds little can take more even if there is no room left', () => {
  const room = createRoom(SIZE, LEAST);
  room.join('a').take(SIZE + 100);
  expect(room.free()).toBe(-100);
  const late = room.join('b');
  expect(late.limit(0, ignore)).toBe(LEAST);
  late.take(5);
  expect(late.free()).toBe(LEAST - 5);
  late.take(3);
  expect(late.limit(8, ignore)).toBe(LEAST);
});

test('room that is offered to idle parts of a workspace is available, and a busy part can double its room', () => {
  const room = createRoom(SIZE, LEAST);
  const parts = join(room, ...'aaaaaaaaaaaaaaaa');
  const [busy, idle] = parts.map(({ share }) => share) as [RoomShare, RoomShare];
  expect(parts.reduce((sum, { share }) => sum + share.limit(0, ignore), 0)).toBe(2_048);
  busy.take(500);
  expect(busy.limit(500, ignore)).toBe(1_000);
  expect(idle.limit(0, ignore)).toBeLessThan(2_048 / 16);
  busy.take(1_000);
  expect(busy.limit(1_500, ignore)).toBe(1_500 + busy.free());
});

test('a part without room is called once there is room, but not by its own claims', () => {
  const room = createRoom(SIZE, LEAST);
  const [one, two, other] = ['a', 'a', 'b'].map(room.join) as [RoomShare, RoomShare, RoomShare];
  one.take(2_048);
  other.take(2_000);
  const [onOne, onTwo] = [vi.fn<() => void>(), vi.fn<() => void>()];
  one.limit(2_048, onOne);
  two.limit(0, onTwo);
  // The claims that have ended are not sufficient for this workspace to use more.
  other.give(10);
  expect(onTwo).not.toHaveBeenCalled();
  one.give(1_500, onOne);
  one.give(10, onOne);
  expect([onOne.mock.calls.length, onTwo.mock.calls.length]).toEqual([0, 1]);
  other.give(10);
  expect(onOne).toHaveBeenCalledOnce();
});

test('parts that have been removed do not count and are not called', () => {
  const room = createRoom(SIZE, LEAST);
  const [one, two] = ['a', 'a'].map(room.join) as [RoomShare, RoomShare];
  one.take(3_000);
  const onRoom = vi.fn<() => void>();
  two.limit(0, onRoom);
  two.leave();
  one.give(3_000);
  expect(onRoom).not.toHaveBeenCalled();
  expect(one.limit(0, onRoom)).toBe(2_048);
});

interface Exchanging extends Part {
  /** The room after the exchange in progress. */
  limit: number | undefined;
  isWanted: boolean;
  readonly want: () => void;
}

function createExchanging(part: Part): Exchanging {
  const exchanging: Exchanging = {
    ...part,
    limit: undefined,
    isWanted: true,
    want() {
      exchanging.isWanted = true;
    },
  };
  return exchanging;
}

/**
 * Starts or ends an exchange of a random part, as in `exchange-loop.ts`. Endpoints are slow, so only a few claims end.
 */
function exchangeAll(parts: readonly Exchanging[], { below, pick }: Choices, check: () => void): void {
  for (let step = 0; step < 20_000; step++) {
    const part = pick(parts);
    const { share, limit, held, want } = part;
    if (limit !== undefined) {
      part.limit = undefined;
      const ended = below(10) === 0 ? Math.min(held, 1) : 0;
      const isFailed = below(10) === 0;
      const claimed = isFailed ? 0 : Math.max(0, Math.min(128, limit - held + ended));
      share.take(claimed);
      share.give(isFailed ? 0 : ended, isFailed || claimed < limit - held + ended ? want : undefined);
      part.held += isFailed ? 0 : claimed - ended;
      part.isWanted = isFailed || claimed === 128;
    } else if (part.isWanted || below(10) === 0) {
      part.limit = share.limit(held, want);
      share.reserve(Math.max(0, part.limit - held));
    }
    check();
  }
}

test.each([
  [2, 1],
  [20, 2],
  [100, 3],
  [1_000, 4],
])('%i parts of a workspace never exceed its share, even if their exchanges overlap', (count, seed) => {
  const room = createRoom(SIZE, LEAST);
  const other = room.join('b');
  const parts = join(room, ...Array.from({ length: count }, () => 'a')).map(createExchanging);
  let [most, least] = [0, SIZE];
  exchangeAll(parts, createChoices(seed), () => {
    most = Math.max(most, SIZE - room.free());
    least = Math.min(least, other.free());
  });
  expect(most).toBeLessThanOrEqual(SIZE / 2);
  expect(most).toBeGreaterThan(SIZE / 3);
  expect(least).toBeGreaterThanOrEqual(1_024);
  expect(SIZE - room.free()).toBe(parts.reduce((sum, { held }) => sum + held, 0));
});

/** A part with events that wait to be claimed. */
interface Supplied extends Exchanging {
  waiting: number;
  /** The limit after the last exchange, up to which events are pushed. */
  pushedUpTo: number;
}

/** Stores an event of the part, or starts or ends an exchange, as in `exchange-loop.ts`. */
function step(part: Supplied, { below }: Choices): void {
  const { share, limit, held, want } = part;
  if (below(3) === 0) {
    const isPushed = held < part.pushedUpTo;
    share.take(isPushed ? 1 : 0);
    part.held += isPushed ? 1 : 0;
    part.waiting += isPushed ? 0 : 1;
    part.isWanted ||= !isPushed;
  } else if (limit === undefined) {
    if (!part.isWanted && held === 0) return;
    part.limit = share.limit(held, want);
    share.reserve(Math.max(0, part.limit - held));
    part.isWanted = false;
  } else {
    const ended = below(held + 1);
    const budget = limit - held + ended;
    const claimed = Math.max(0, Math.min(budget, part.waiting));
    share.take(claimed);
    part.limit = undefined;
    part.pushedUpTo = limit;
    part.held += claimed - ended;
    part.waiting -= claimed;
    part.isWanted ||= budget > 0 && part.waiting > 0;
    share.give(ended, claimed < budget ? want : undefined);
  }
}

test('in small rooms, no part waits for the room that is left by others', () => {
  const random = createChoices(21);
  let [quiet, left] = [0, 0];
  for (let world = 0; world < 400; world++) {
    const room = createRoom(5 + random.below(10), 1 + random.below(2));
    const tenants = Array.from({ length: 2 + random.below(2) }, () => random.pick(['a', 'b', 'c']));
    const parts = join(room, ...tenants).map((part): Supplied => {
      const supplied = Object.assign(createExchanging(part), { waiting: 0, pushedUpTo: 0, isWanted: false });
      return Object.assign(supplied, { want: () => void (supplied.isWanted = true) });
    });
    for (let i = 0; i < 40; i++) {
      step(random.pick(parts), random);
      if (parts.some(part => part.isWanted || part.limit !== undefined)) continue;
      quiet++;
      if (parts.some(({ share, waiting }) => waiting > 0 && share.free() > 0)) left++;
    }
  }
  expect(left).toBe(0);
  expect(quiet).toBeGreaterThan(400);
});

test('reserved room does not count as held, is used first, and ends when room is assigned', () => {
  const room = createRoom(SIZE, LEAST);
  const [one, two] = ['a', 'a'].map(room.join) as [RoomShare, RoomShare];
  one.reserve(1_000);
  const free = two.free();
  expect([room.free(), free]).toEqual([SIZE, 1_159]);
  one.take(400);
  expect([room.free(), two.free()]).toEqual([SIZE - 400, free]);
  one.take(700);
  expect(two.free()).toBeLessThan(free);
  one.give(1_100);
  one.reserve(1_000);
  one.give(0);
  expect([room.free(), two.free(), one.free()]).toEqual([SIZE, 2_048, 2_048]);
});

test('released room only calls as many parts of a workspace as it is sufficient for', () => {
  const room = createRoom(SIZE, LEAST);
  const [busy, ...others] = Array.from('aaaaaaaaaaaaaaaaaaaaa', room.join) as [RoomShare, ...RoomShare[]];
  busy.take(2_304);
  const onRoom = vi.fn<() => void>();
  for (const share of others) share.limit(0, () => onRoom());
  busy.give(5);
  expect(onRoom).toHaveBeenCalledTimes(others[0]?.free() ?? 0);
  expect(onRoom).toHaveBeenCalledTimes(4);
  busy.give(100);
  expect(onRoom).toHaveBeenCalledTimes(20);
});

test.each([
  ['one workspace', 1],
  ['as many workspaces', 5_000],
])('thousands of parts of %s that wait do not delay each other', (_of, tenants) => {
  const room = createRoom(SIZE, LEAST);
  const busy = room.join('busy');
  busy.take(SIZE);
  const parts = Array.from({ length: 5_000 }, (_, i) => room.join(`${i % tenants}`));
  const [first, ...rest] = parts as [RoomShare, ...RoomShare[]];
  let free = 0;
  // Each look at the room of a part rounds once.
  const round = vi.spyOn(Math, 'floor');
  onTestFinished(() => round.mockRestore());
  for (const share of rest) {
    share.take(LEAST);
    share.limit(LEAST, () => void free++);
  }
  round.mockClear();
  for (let i = 0; i < 100; i++) first.give(0);
  expect(round.mock.calls.length).toBeLessThan(1_000);
  expect(free).toBe(0);
  busy.give(SIZE);
  for (const share of rest) share.give(LEAST);
  expect(free).toBe(rest.length);
});
