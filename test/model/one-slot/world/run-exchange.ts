import type { ExchangeCall } from '../part/exchange.ts';
import type { Move } from './move.ts';
import { run } from './redis.ts';
import type { Dispatcher, Setup } from './world.ts';

/** Redis reads and runs an exchange, whose response is in progress. */
export function exchange(setup: Setup, index: number, sent: ExchangeCall): Move {
  return {
    label: `Redis runs the exchange of ${sent.by}`,
    kind: 'urgent',
    run: next => {
      const me = next.dispatchers[index] as Dispatcher;
      const reply = run(next, setup, sent);
      if (me.call !== null) me.call = { ...me.call, reply };
    },
  };
}
