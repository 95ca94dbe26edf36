import { createHash } from 'node:crypto';

/** Number of dispatchers per part, if available. If one crashes, the other continues immediately. */
const WORKERS_OF_A_PART = 2;

/** Duty of a dispatcher for a part. The home also performs the tasks that are needed once per part. */
export type Duty = 'home' | 'work' | 'none';

function weightOf(member: string, part: string): string {
  return createHash('sha1').update(`${member} ${part}`).digest('hex');
}

/**
 * Returns the duty of `member` for a part. All dispatchers compute the same result independently, and a dispatcher that
 * joins or leaves only affects its own parts (rendezvous hashing).
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
