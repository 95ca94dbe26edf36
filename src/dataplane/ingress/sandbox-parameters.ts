import { queryPieces } from '../../http/query-pieces.ts';

const SANDBOX_PARAMETERS = new Map([
  ['sb_fail_code', 'sb_fail_code'],
  ['sb_fail_count', 'sb_fail_count'],
  ['runid', 'runId'],
]);

/**
 * Returns the sandbox parameter in a request target, or undefined if there is none. It is found with or without a
 * value, and in any encoding. Differences in case, surrounding blanks and `;` as a separator are also accepted. We do
 * this because a misspelled sandbox event must not be delivered to partners.
 *
 * @throws RangeError if there are too many parameters, which `checkPath` refuses
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
  // Decode each byte separately. The three names are ASCII, so invalid UTF-8 elsewhere in a name cannot hide them.
  return encoded
    .replace(/\+/g, ' ')
    .replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .trim()
    .toLowerCase();
}
