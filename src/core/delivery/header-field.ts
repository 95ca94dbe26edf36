/** Why a header from a Secret, or with a sealed value, doesn't have a value. */
export type HeaderFault =
  | 'secret_missing'
  | 'key_missing'
  | 'secret_unread'
  | 'header_value_refused'
  | 'seal_not_opened';

/** Result for a header without a value. */
export type HeaderField = { readonly value: string } | { readonly fault: HeaderFault };

/** Maximum length of a value from a Secret. Long enough for a signed token. */
export const HEADER_FIELD_MAX = 4_096;

const VALUE = /^[\t -~]*$/;

/**
 * Reads a header value from a field of a Secret. As with values in the spec, visible ASCII characters, spaces, and tabs
 * are allowed. Files often end with a line break (`kubectl create secret --from-file`), so a single trailing one is
 * removed. For an invalid value, the result is a fault code, which doesn't contain the value.
 * @param data base64 value from Kubernetes, or undefined if the Secret doesn't contain the key
 */
export function readHeaderField(data: string | undefined): HeaderField {
  if (data === undefined) return { fault: 'key_missing' };
  // Decode each byte as one character. Non-ASCII bytes aren't allowed, whether or not they are valid UTF-8.
  const value = Buffer.from(data, 'base64')
    .toString('latin1')
    .replace(/\r?\n$/, '');
  return value.length > HEADER_FIELD_MAX || !VALUE.test(value) ? { fault: 'header_value_refused' } : { value };
}
