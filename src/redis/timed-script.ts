import type { Reply } from './client.ts';
import type { NamedScript } from './named-scripts.ts';

const timed = new WeakMap<NamedScript, NamedScript>();

/**
 * Returns a script that does the same, and also returns its duration in Redis: `[microseconds, reply]`. Redis measures
 * the time itself, so it does not include the network or waiting for other commands. Line numbers are preserved.
 */
export function timedScript(script: NamedScript): NamedScript {
  let made = timed.get(script);
  if (made === undefined) {
    const body = script.source.replace('\n', "\nlocal BEGUN = redis.call('TIME') local reply = (function() ");
    const end = "end)() local ENDED = redis.call('TIME') ";
    const micros = '(ENDED[1] - BEGUN[1]) * 1000000 + ENDED[2] - BEGUN[2]';
    made = { ...script, source: `${body}\n${end}return { ${micros}, reply }\n` };
    timed.set(script, made);
  }
  return made;
}

/** Splits the reply of a timed script. */
export function splitTimed(reply: Reply): { readonly micros: number; readonly reply: Reply } {
  const [micros, own = null] = reply as [number, Reply?];
  return { micros, reply: own };
}
