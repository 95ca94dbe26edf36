import { createHash } from 'node:crypto';

const MOST = 63;

/**
 * Returns the key to use for the given name: NFKD without combining marks, in lower case. All characters other than
 * `a-z0-9` are replaced with a single hyphen. The result has at most 63 characters. Always a DNS label. If the name
 * only contains other characters, the result is `prefix`, followed by a hyphen and a hash of the name.
 *
 * @param prefix one letter: `s` for streams, and `p` for packages
 */
export function slugOf(name: string, prefix: 's' | 'p'): string {
  const slug = name
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replace(/^-/, '')
    .slice(0, MOST)
    .replace(/-$/, '');
  if (slug !== '') return slug;
  return `${prefix}-${createHash('sha256').update(name, 'utf8').digest('hex').slice(0, 16)}`;
}
