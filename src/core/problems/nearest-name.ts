/** The maximum number of letters that can be different in a misspelled name. */
const MOST_SLIPS = 3;
/** Any two short names only have a few differences, so at least this part of the longer name must be the same. */
const LEAST_SAME = 0.5;
/** A name with at least this length can be the beginning of a known name, e.g. `wait` of `waitSeconds`. */
const LEAST_BEGINNING = 3;

/**
 * Returns the known name with the fewest differences, or else the only one that starts with this name. Returns
 * undefined if there are too many differences.
 */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let fewest = MOST_SLIPS + 1;
  for (const each of known) {
    // Each additional letter is a difference. Without this, comparing a name that fills a request would take seconds.
    if (Math.abs(name.length - each.length) > MOST_SLIPS) continue;
    const distance = editDistance(name, each);
    if (distance > LEAST_SAME * Math.max(name.length, each.length)) continue;
    if (distance < fewest) [best, fewest] = [each, distance];
  }
  return best ?? completed(name, known);
}

function completed(name: string, known: readonly string[]): string | undefined {
  if (name.length < LEAST_BEGINNING) return undefined;
  const [only, other] = known.filter(each => each.length > name.length && each.startsWith(name));
  return other === undefined ? only : undefined;
}

/** Returns the number of letters to insert, delete, or replace (the Levenshtein distance). */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] as number) + 1, (next[j - 1] as number) + 1, substitution));
    }
    row = next;
  }
  return row[b.length] as number;
}
