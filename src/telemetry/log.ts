import { type Logger, pino } from 'pino';

export type { Logger };

/** Values of `SLUICE_LOG_LEVEL`, least verbose first. */
export const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const;

/**
 * Creates the logger of a process, which writes one JSON object per line to standard output. Callers must not pass
 * secrets or email addresses as fields. The redaction is an additional protection.
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
