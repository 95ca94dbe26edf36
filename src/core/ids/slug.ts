import { createHash } from 'node:crypto';

const MOST = 63;

/**
 * Returns the key of a name: NFKD without combining marks, lower case, everything except `a-z0-9` as single hyphens,
 * at most 63 characters; always a DNS label. A name without such characters becomes `prefix`, a hyphen and a hash of
 * it.
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
