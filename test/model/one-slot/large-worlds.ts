import type { Setup } from './world/world.ts';

const GATES = ['pause', 'resume', 'skip', 'activate', 'deactivate'] as const;

/** A world for random histories: three dispatchers, three subscriptions, and four group keys. */
const LARGE: Setup = {
  dispatchers: ['x', 'y', 'w'],
  caps: { a: 1, b: 2, c: 3 },
  events: { 1: 5, 2: 4, 3: 3, 4: 2 },
  batches: true,
  limit: 5,
  faults: ['push lost', 'connection drops', 'deaf', 'answer lost', 'death', 'stall', 'send repeated', 'suspicion'],
  mostFaults: 5,
  gates: GATES,
  mostGates: 8,
  failures: 4,
  ticks: 60,
  homes: 2,
  preemptions: Number.POSITIVE_INFINITY,
  bound: 24,
};

export const LARGE_WORLDS: readonly Setup[] = [
  LARGE,
  { ...LARGE, caps: { a: 1, b: 2 }, granted: 12 },
  { ...LARGE, faults: [...LARGE.faults, 'endpoint hangs'], limit: 8 },
  { ...LARGE, caps: { a: 2, b: 1 }, faults: ['failover', 'death', 'stall', 'answer lost', 'send repeated'] },
  { ...LARGE, caps: { a: 2, b: 1 }, faults: ['clock goes back', 'stall', 'connection drops'] },
  { ...LARGE, caps: { a: 2, b: 1 }, faults: ['push lost', 'answer lost'], gates: [], poison: '11', mostFaults: 2 },
];
