import { createHash } from 'node:crypto';

/** Returns the strong entity tag (RFC 9110, 8.8.3) of a text. */
export function entityTagOf(text: string): string {
  return `"${createHash('sha256').update(text, 'utf8').digest('base64url').slice(0, 22)}"`;
}

/** Returns true if the tag matches an `If-None-Match` field (RFC 9110, 13.1.2). Weak and strong tags are equal. */
export function matchesWeakly(field: string, tag: string): boolean {
  return tagsOf(field).some(each => each === '*' || each.replace(/^W\//, '') === tag);
}

/** Returns true if the tag matches an `If-Match` field (RFC 9110, 13.1.1). Weak tags never match. */
export function matchesStrongly(field: string, tag: string): boolean {
  return tagsOf(field).some(each => each === '*' || each === tag);
}

function tagsOf(field: string): string[] {
  return field.split(',').map(tag => tag.trim());
}
