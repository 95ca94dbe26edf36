import { queryPieces } from '../../http/query-pieces.ts';

/** How often a name is decoded: a proxy may decode it once more than Sluice. */
const DECODINGS = 3;
const NAME = 'accesstoken';

/** Returns whether a query may name a token. Plain text without the name does not, and costs no decoding. */
function mayNameToken(query: string): boolean {
  if (/[^\x20-\x24\x26-\x7e]/.test(query)) return true;
  return query
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '')
    .includes(NAME);
}

/**
 * Returns whether the query of a request target has a parameter `access_token` in any spelling that a proxy might
 * accept; `too many` if the query has too many parameters. Tokens in addresses end up in logs and histories (RFC 9700,
 * section 4.3.2).
 */
export function carriesToken(target: string): boolean | 'too many' {
  const pieces = queryPieces(target);
  if (pieces === undefined) return 'too many';
  return mayNameToken(pieces.join('&')) && pieces.some(piece => plainName(piece).includes(NAME));
}

function plainName(parameter: string): string {
  let name = parameter;
  for (let i = 0; i < DECODINGS; i++) name = decode(name.split('=', 1)[0] as string);
  return name
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '');
}

function decode(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, encoded => Buffer.from(encoded.replaceAll('%', ''), 'hex').toString());
}
