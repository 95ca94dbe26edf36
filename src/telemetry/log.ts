import { type DestinationStream, type Logger, pino, stdSerializers } from 'pino';

export type { Logger };

/** The possible values of `SLUICE_LOG_LEVEL`, starting with the least verbose. */
export const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const;

/**
 * Creates a process's logger. The logger writes JSON objects to standard output, one per line. Secrets and email
 * addresses
 * must not be passed as fields. Redaction is only there as an additional protection.
 *
 * @param destination defaults to standard output
 */
export function createLogger(
  options: { level: (typeof LOG_LEVELS)[number]; role?: string },
  destination?: DestinationStream,
): Logger {
  const settings = {
    level: options.level,
    base: options.role === undefined ? null : { role: options.role },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: (error: unknown) => fieldsOf(stdSerializers.err(error as Error)) },
    redact: {
      paths: [
        '*.authorization',
        '*.token',
        '*.secret',
        '*.key',
        '*.password',
        '*.invitedEmail',
        'err.response',
        'err.headers',
        'err.body',
      ],
      censor: '[redacted]',
    },
  };
  return destination === undefined ? pino(settings) : pino(settings, destination);
}

/** Matches the 25 constants that each DOMException has, such as the one of a timeout. */
const DOM_CONSTANT = /^[A-Z_]+_ERR$/;

/**
 * Returns the fields of a serialized error without its objects. For example, an error response of Redis contains the
 * arguments of its command, such as passwords and the event bodies.
 */
function fieldsOf(error: unknown): unknown {
  if (typeof error !== 'object' || error === null) return error;
  const fields = Object.entries(error).flatMap(([name, value]: [string, unknown]) => {
    if (DOM_CONSTANT.test(name)) return [];
    if (name === 'aggregateErrors') return [[name, (value as unknown[]).map(fieldsOf)]];
    const isNested = typeof value === 'object' && value !== null;
    if (!isNested || isListOfText(value)) return [[name, value]];
    return (value as { readonly raw?: unknown }).raw instanceof Error ? [[name, fieldsOf(value)]] : [];
  });
  return Object.fromEntries(fields);
}

const isListOfText = (value: object) => Array.isArray(value) && value.every(each => typeof each === 'string');

/** Returns a logger that adds `role` to its lines. If `log` already has this field, it is only included once. */
export function logOfRole(log: Logger, role: string): Logger {
  return log.bindings().role === undefined ? log.child({ role }) : log;
}
