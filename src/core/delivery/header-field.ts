/** The reason why a header using a Secret or a sealed value does not have a value. */
export type HeaderFault =
  | 'secret_missing'
  | 'key_missing'
  | 'secret_unread'
  | 'header_value_refused'
  | 'seal_not_opened';

/** The value of a header, or the reason why there is none. `why` describes the cause, for use in messages. */
export type HeaderField =
  | { readonly value: string }
  | { readonly fault: HeaderFault; readonly why?: string | undefined };

/** The maximum length of a value from a Secret. Long enough for a signed token. */
export const HEADER_FIELD_MAX = 4_096;

const VALUE = /^[\t -~]*$/;

/**
 * Reads the value of a header from a field of a Secret. As with values in the spec, visible ASCII characters, spaces,
 * and tabs are allowed. Files often end with a line break (`kubectl create secret --from-file`), so a single trailing
 * one is removed. For an invalid value, the result is a fault code, which doesn't contain the value.
 * @param data the base64 value that was returned by Kubernetes. Undefined if the Secret does not contain the key
 */
export function readHeaderField(data: string | undefined): HeaderField {
  if (data === undefined) return { fault: 'key_missing' };
  // Each byte is decoded as a single character. Non-ASCII bytes aren't allowed, whether or not they are valid UTF-8.
  const value = Buffer.from(data, 'base64')
    .toString('latin1')
    .replace(/\r?\n$/, '');
  return value.length > HEADER_FIELD_MAX || !VALUE.test(value) ? { fault: 'header_value_refused' } : { value };
}
