import { queryPieces } from '../../http/query-pieces.ts';

const SANDBOX_PARAMETERS = new Map([
  ['sb_fail_code', 'sb_fail_code'],
  ['sb_fail_count', 'sb_fail_count'],
  ['runid', 'runId'],
]);

/**
 * Returns the sandbox parameter in a request target, if there is one. Matches with or without a value and in any
 * encoding, ignoring case and surrounding blanks. `;` is accepted as a separator as well. We're this lenient because
 * misspelled sandbox events must never be delivered to partners.
 *
 * @throws RangeError if there are too many parameters (refused by `checkPath`)
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
  // Decode byte by byte. All three names are ASCII, so invalid UTF-8 elsewhere in a name can't hide them.
  return encoded
    .replace(/\+/g, ' ')
    .replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .trim()
    .toLowerCase();
}
