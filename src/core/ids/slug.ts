import { createHash } from 'node:crypto';

const MOST = 63;

/**
 * Returns the key for a name: NFKD without combining marks, in lower case, with everything except `a-z0-9` turned into
 * single hyphens, and at most 63 characters long. Always a DNS label. A name consisting only of other characters
 * becomes `prefix`, a hyphen, and a hash of the name.
 *
 * @param prefix one letter: `s` for streams, `p` for packages
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
