const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Whether the text can stand in a header field as it is (RFC 9110, 5.5), one byte a character. */
export function isHeaderValue(value: string): boolean {
  return FIELD_VALUE.test(value);
}
