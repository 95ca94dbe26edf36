const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Returns true if the text is a valid header field value (RFC 9110, 5.5), with one byte per character. */
export function isHeaderValue(value: string): boolean {
  return FIELD_VALUE.test(value);
}
