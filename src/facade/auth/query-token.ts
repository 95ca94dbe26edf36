/** How often a name is decoded: a proxy may do it once more than we. */
const DECODINGS = 3;

/**
 * Whether the query of a request target has a parameter `access_token`, in any spelling that anything on the way might
 * take for it. Tokens in addresses end up in logs and histories (RFC 9700, section 4.3.2).
 */
export function carriesToken(target: string): boolean {
  const start = target.indexOf('?');
  if (start < 0) return false;
  return target
    .slice(start + 1)
    .split(/[?&;#]/)
    .some(parameter => plainName(parameter).includes('accesstoken'));
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
