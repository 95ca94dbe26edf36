import { createHash } from 'node:crypto';

/** Dispatchers that work on a part, if there are so many. When one dies, the other goes on at once. */
const WORKERS_OF_A_PART = 2;

/** What a dispatcher has to do with a part. The one that is home also does what is needed once for each part. */
export type Duty = 'home' | 'work' | 'none';

function weightOf(member: string, part: string): string {
  return createHash('sha1').update(`${member} ${part}`).digest('hex');
}

/**
 * Returns what `member` has to do with a part. All dispatchers find the same without talking to each other, and one that
 * joins or leaves only changes the parts that it gets or had (rendezvous hashing).
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
