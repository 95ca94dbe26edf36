import { queryPieces } from '../../http/query-pieces.ts';

const SANDBOX_PARAMETERS = new Map([
  ['sb_fail_code', 'sb_fail_code'],
  ['sb_fail_count', 'sb_fail_count'],
  ['runid', 'runId'],
]);

/**
 * Returns the sandbox parameter that a request target names, undefined when it names none. With or without a value, in any
 * spelling that decodes to it; case, outer blanks and `;` as a separator are forgiven too, because an event that was
 * meant for the sandbox must not reach partners for want of a spelling.
 *
 * @throws RangeError where the parameters are more than a query may have: `checkPath` refuses those
 */
export function findSandboxParameter(target: string): string | undefined {
  const pieces = queryPieces(target);
  if (pieces === undefined) throw new RangeError('too many parameters');
  for (const piece of pieces) {
    const found = SANDBOX_PARAMETERS.get(decodeName(piece.split('=', 1)[0] as string));
    if (found !== undefined) return found;
  }
  return undefined;
}

function decodeName(encoded: string): string {
  // Byte by byte: the three names are ASCII, so broken UTF-8 elsewhere in a name cannot hide one of them.
  return encoded
    .replace(/\+/g, ' ')
    .replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .trim()
    .toLowerCase();
}
