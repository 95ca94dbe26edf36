/** Attributes required for every CloudEvent (CloudEvents 1.0.2, "REQUIRED Attributes"). */
export const REQUIRED_ATTRIBUTES = ['specversion', 'id', 'source', 'type'] as const;

const NAME = /^[a-z0-9]+$/;
/** Characters disallowed in the type "String", plus lone surrogates, which aren't valid Unicode. */
const FORBIDDEN = /[\p{Cc}\p{Noncharacter_Code_Point}]/u;
const ABSOLUTE_URI = /^[A-Za-z][A-Za-z0-9+.-]*:/;
/** See RFC 3339, 5.6. A value of 60 for the seconds represents a leap second. */
const TIMESTAMP =
  /^(\d{4})-(\d\d)-(\d\d)[Tt]([01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
/** See RFC 2045, 5.1. May include parameters. */
const MEDIA_TYPE = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+\/[!#$%&'*+.^_`|~0-9A-Za-z-]+\s*(?:;.*)?$/;

/** Returns true if the name is a valid CloudEvents attribute name. Data members don't count as attributes. */
export function isAttributeName(name: string): boolean {
  return NAME.test(name) && name !== 'data';
}

/** Returns an error message if the decoded text of an attribute is invalid. Returns undefined otherwise. */
export function faultOfAttribute(name: string, text: string): string | undefined {
  if (!text.isWellFormed()) return 'is not valid Unicode';
  if (FORBIDDEN.test(text)) return 'contains a control character or another character that CloudEvents does not allow';
  switch (name) {
    case 'specversion':
      return text === '1.0' ? undefined : 'must be 1.0';
    case 'id':
    case 'source':
    case 'type':
    case 'subject':
      return text === '' ? 'is empty' : undefined;
    case 'time':
      return isTimestamp(text) ? undefined : 'must be an RFC 3339 time, such as 2026-01-31T12:00:00Z';
    case 'dataschema':
      return ABSOLUTE_URI.test(text) ? undefined : 'must be an absolute URI';
    case 'datacontenttype':
      return MEDIA_TYPE.test(text) ? undefined : 'must be a media type, such as application/json';
    default:
      return undefined;
  }
}

function isTimestamp(text: string): boolean {
  const [, year, month, day] = TIMESTAMP.exec(text)?.map(Number) ?? [];
  if (year === undefined || month === undefined || day === undefined) return false;
  if (month < 1 || month > 12 || day < 1) return false;
  // Day 0 of the next month is the last day of this month.
  return day <= new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate();
}
