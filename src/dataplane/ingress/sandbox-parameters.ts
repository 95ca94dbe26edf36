import { queryPieces } from '../../http/query-pieces.ts';

const SANDBOX_PARAMETERS = new Map([
  ['sb_fail_code', 'sb_fail_code'],
  ['sb_fail_count', 'sb_fail_count'],
  ['runid', 'runId'],
]);

/**
 * If there is a sandbox parameter in a request target, this returns it. The value, the encoding, and the case of the
 * parameter do not matter, nor do blanks around it. `;` can also be used as a separator. We're this lenient because
 * misspelled sandbox events must never be delivered to partners.
 *
 * @throws RangeError if there are too many parameters (this is refused by `checkPath`)
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
  // Decode byte by byte. Since all three names are ASCII, they can't be hidden by invalid UTF-8 in another part of the
  // name.
  return encoded
    .replace(/\+/g, ' ')
    .replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .trim()
    .toLowerCase();
}
