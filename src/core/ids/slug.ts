import { createHash } from 'node:crypto';

const MOST = 63;

/**
 * The key that a name is given: NFKD without combining marks, lower case, everything but `a-z0-9` as single hyphens, at
 * most 63 characters; a DNS label always. A name that leaves nothing becomes `prefix`, a hyphen and a hash of it.
 *
 * @param prefix one letter: `s` of streams, `p` of packages
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
