import { type Logger, pino } from 'pino';

export type { Logger };

/** Levels that `SLUICE_LOG_LEVEL` takes, least talkative first. */
export const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const;

/**
 * The process's logger: one JSON line each, on standard output. Secrets and e-mail addresses are never passed as
 * fields; the redaction below is the second line of defence.
 */
export function createLogger(options: { level: (typeof LOG_LEVELS)[number]; role?: string }): Logger {
  return pino({
    level: options.level,
    base: options.role === undefined ? null : { role: options.role },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: label => ({ level: label }) },
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
  });
}
