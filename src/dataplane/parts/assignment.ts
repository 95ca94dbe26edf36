import { hash } from 'node:crypto';

/** The number of dispatchers for each part (if there are enough). If one crashes, the other continues immediately. */
const WORKERS_OF_A_PART = 2;

/**
 * The duty that a dispatcher has for a part. The home is also responsible for all tasks that are only needed once for
 * each part.
 */
export type Duty = 'home' | 'work' | 'none';

function weightOf(member: string, part: string): string {
  return hash('sha1', `${member} ${part}`);
}

/**
 * Returns the duty that `member` has for a part. All dispatchers compute the same result independently, and a
 * dispatcher that joins or leaves only affects its own parts (rendezvous hashing).
 */
export function dutyOf(member: string, members: readonly string[], part: string): Duty {
  const own = weightOf(member, part);
  let before = 0;
  for (const other of members) {
    if (other === member) continue;
    const weight = weightOf(other, part);
    if (weight > own || (weight === own && other > member)) before++;
  }
  if (before === 0) return 'home';
  return before < WORKERS_OF_A_PART ? 'work' : 'none';
}
