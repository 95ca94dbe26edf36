/** Longest wait that `Retry-After` can request: 10 h, the sixth step of the retry schedule. */
export const RETRY_AFTER_MAX_MS = 10 * 60 * 60 * 1000;

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

const IMF_FIXDATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (\d\d) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT$/;
const RFC850_DATE = /^[A-Z][a-z]{5,8}, (\d\d)-([A-Z][a-z]{2})-(\d\d) (\d\d):(\d\d):(\d\d) GMT$/;
const ASCTIME_DATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ([A-Z][a-z]{2}) ([ \d]\d) (\d\d):(\d\d):(\d\d) (\d{4})$/;

/** Check the number of days in this month, so that 31 February is not parsed as a date in March. */
function utcMs(year: number, month: string, ...[day, hour, minute, second]: [string, string, string, string]) {
  const monthIndex = MONTHS.indexOf(month);
  const ms = Date.UTC(year, monthIndex, Number(day), Number(hour), Number(minute), Math.min(Number(second), 59));
  const valid =
    monthIndex >= 0 &&
    new Date(ms).getUTCDate() === Number(day) &&
    Number(hour) < 24 &&
    Number(minute) < 60 &&
    Number(second) <= 60;
  return valid ? ms : undefined;
}

/**
 * Parses an HTTP-date. Returns the number of milliseconds since the epoch, or undefined if the date is invalid. A
 * recipient must support three formats (RFC 9110, 5.6.7), all of which are accepted. We don't want to use `Date.parse`
 * here because it treats the asctime format as local time and accepts plenty of other formats.
 */
export function parseHttpDate(value: string, nowMs: number): number | undefined {
  const imf = IMF_FIXDATE.exec(value);
  if (imf) {
    const [, day = '', month = '', year = '', hour = '', minute = '', second = ''] = imf;
    return utcMs(Number(year), month, day, hour, minute, second);
  }
  const rfc850 = RFC850_DATE.exec(value);
  if (rfc850) {
    const [, day = '', month = '', shortYear = '', hour = '', minute = '', second = ''] = rfc850;
    // A two-digit year that appears to be more than 50 years in the future stands for the most recent past year
    // ending in the same digits (RFC 9110, 5.6.7).
    const thisYear = new Date(nowMs).getUTCFullYear();
    const year = Math.floor(thisYear / 100) * 100 + Number(shortYear);
    return utcMs(year > thisYear + 50 ? year - 100 : year, month, day, hour, minute, second);
  }
  const asctime = ASCTIME_DATE.exec(value);
  if (asctime) {
    const [, month = '', day = '', hour = '', minute = '', second = '', year = ''] = asctime;
    return utcMs(Number(year), month, day.trim(), hour, minute, second);
  }
  return undefined;
}

/**
 * Returns the delay requested by the `Retry-After` header, in milliseconds from `nowMs`. The result is between 0 and
 * {@link RETRY_AFTER_MAX_MS}. Accepts a number of seconds or an HTTP-date (RFC 9110, 10.2.3); for a date in the past,
 * the wait is 0. All other values will be ignored, including fractions and signs. In this case, this returns undefined.
 */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  const text = value?.trim();
  if (!text) return undefined;
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, RETRY_AFTER_MAX_MS);
  const dateMs = parseHttpDate(text, nowMs);
  if (dateMs === undefined) return undefined;
  return Math.min(Math.max(dateMs - nowMs, 0), RETRY_AFTER_MAX_MS);
}
