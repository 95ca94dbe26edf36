import { queryPieces } from '../../http/query-pieces.ts';

/** The number of times that a name is decoded: more than once, because a proxy might decode the name as well. */
const DECODINGS = 3;
const NAME = 'accesstoken';

/**
 * Returns true if the query may contain the token name. Lets us skip plain text that doesn't have the name, without
 * having to decode it.
 */
function mayNameToken(query: string): boolean {
  if (/[^\x20-\x24\x26-\x7e]/.test(query)) return true;
  return query
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '')
    .includes(NAME);
}

/**
 * Returns true if there is an `access_token` parameter in the query of a request target. Includes all spellings that a
 * proxy could accept. Returns `too many` if there are too many parameters. A token in a URL must be refused because
 * URLs often end up in logs and histories (RFC 9700, section 4.3.2).
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
