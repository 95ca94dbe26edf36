import { hold } from '../../state/violation.ts';
import { DEAD } from '../part/part.ts';
import { run } from './redis.ts';
import { cameTo, type Dispatcher, idOf, type Setup, type World } from './world.ts';

export interface Move {
  readonly label: string;
  /** `urgent`: performed by a running process within a tick regardless of the kind of process. */
  readonly kind: 'urgent' | 'sender' | 'endpoint' | 'fault' | 'gate' | 'free' | 'tick';
  readonly run: (next: World) => void;
}

/** Takes the expired claims of another dispatcher, and looks for work. */
export function evictOther(world: World, setup: Setup, me: Dispatcher, name: string): void {
  const other = world.dispatchers.find(dispatcher => dispatcher.name === name);
  const before = world.part.claims;
  const { claims } = run(world, setup, { step: 'evict', dispatcher: name });
  if (other !== undefined) {
    const taken = new Set(claims.map(({ lane }) => before[lane]?.mark));
    other.held = other.held.map(held => (taken.has(held.mark) ? { ...held, lapsedNow: true } : held));
  }
  for (const { lane, ref } of claims) {
    const entry = cameTo(lane, idOf(world, ref));
    world.history.lapses[entry] = (world.history.lapses[entry] ?? 0) + 1;
    const lives = other?.state === 'up' && world.now - other.renewed < DEAD;
    const holds = lives && other.held.some(held => held.lane === lane && held.ref === ref);
    hold(16, !holds, () => `${entry} is taken from ${name}, which is sending it`);
  }
  if (other === undefined || (other.state !== 'up' && world.now - other.up >= DEAD)) me.gone = [...me.gone, name];
  me.wanted = true;
}
