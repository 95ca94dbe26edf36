import type { Argument } from './client.ts';
import type { Completion } from './inbox-store.ts';

/** Bodies of failed attempts that one call brings: as many bytes as are kept of a subscription. */
const FAILURE_BYTES = 256 * 1024;

/** (number of the item, a plus if it was longer, body)* of those that are to be kept: the last ones, where they are too many. */
export function bodiesOf(items: readonly Completion[]): Argument[] {
  const args: Argument[][] = [];
  let bytes = 0;
  for (let i = items.length - 1; i >= 0; i--) {
    const body = items[i]?.responseBody;
    if (body === undefined || body.length === 0) continue;
    bytes += body.length;
    if (bytes > FAILURE_BYTES) break;
    args.unshift([i, items[i]?.responseTruncated ? '+' : '', body]);
  }
  return args.flat();
}
