/** Maximum length of a group key, in bytes of UTF-8. */
const GROUP_KEY_MAX_BYTES = 256;
const EVENT_ID_MAX_LENGTH = 256;
const EVENT_TYPE_MAX_LENGTH = 128;
/** Maximum length of one forwarded header value, and of the content type. */
const FORWARD_VALUE_MAX_LENGTH = 2048;
/** Maximum total length of the forwarded names and values of one event. */
export const FORWARD_TOTAL_MAX_LENGTH = 8192;
/** Maximum number of attributes of a CloudEvent in binary mode, including extensions. */
export const ATTRIBUTES_MAX = 64;
/** Maximum total length of their names (with `ce-`) and values: what common receivers accept in one header. */
export const ATTRIBUTES_TOTAL_MAX_LENGTH = 8192;

const SIMPLE_GROUP_KEY = /^[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?$/;
const CONTROL_CHARACTER = /\p{Cc}/u;
/** Space of any kind, including no-break and ideographic space. */
const OUTER_SPACE = /^\p{Z}|\p{Z}$/u;
/** A field value may contain tab and bytes from 0x80 on (RFC 9110, 5.5), but no other control characters. */
const NOT_A_FIELD_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
const EVENT_ID = /^[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?$/;
const EVENT_TYPE = /^[\x21-\x7e]{1,128}$/;

/**
 * Returns what is wrong with a group key; undefined if it is valid: 1 to 256 bytes of UTF-8, no control characters, no
 * outer spaces. The schema of Activation has the same rule, so every valid key can be activated.
 */
export function faultOfGroupKey(groupKey: string): string | undefined {
  if (SIMPLE_GROUP_KEY.test(groupKey)) return undefined;
  if (groupKey === '') return 'is empty; omit it for an event without a group key';
  if (!groupKey.isWellFormed()) return 'is not valid Unicode';
  if (Buffer.byteLength(groupKey) > GROUP_KEY_MAX_BYTES) return 'is longer than 256 bytes of UTF-8';
  if (CONTROL_CHARACTER.test(groupKey)) return 'holds a control character';
  if (OUTER_SPACE.test(groupKey)) return 'begins or ends with a space';
  return undefined;
}

/**
 * Returns what is wrong with an event id; undefined if it is valid: 1 to 256 characters of printable ASCII without
 * outer spaces, because deliveries send it as the header `webhook-id`.
 */
export function faultOfEventId(id: string): string | undefined {
  if (EVENT_ID.test(id)) return undefined;
  if (id === '') return 'is empty; omit it to get a generated id';
  if (id.length > EVENT_ID_MAX_LENGTH) return 'is longer than 256 characters';
  return 'must be printable ASCII without outer spaces';
}

/** Returns what is wrong with an event type; undefined if it is valid: 1 to 128 characters of visible ASCII. */
export function faultOfEventType(type: string): string | undefined {
  if (EVENT_TYPE.test(type)) return undefined;
  if (type === '') return 'is empty';
  if (type.length > EVENT_TYPE_MAX_LENGTH) return 'is longer than 128 characters';
  return 'must be visible ASCII without spaces';
}

/** Returns what is wrong with the value of a forwarded header; undefined if it is valid. */
export function faultOfForwarded(value: string): string | undefined {
  if (value.length > FORWARD_VALUE_MAX_LENGTH) return 'is longer than 2,048 bytes';
  return NOT_A_FIELD_VALUE.test(value) ? 'holds a control character' : undefined;
}
